import java.io.File;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/** The metastore of Hive 2.3 with the tables of transactions, which it does not make itself. */
public class Metastore {
  public static void main(String[] arguments) throws Throwable {
    if (!new File(arguments[0]).exists()) {
      TxnDbUtil.prepDb(new HiveConf());
    }
    HiveMetaStore.main(new String[] {"-p", arguments[1]});
  }
}
