import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.TxnInfo;
import org.apache.hadoop.hive.metastore.api.TxnState;
import org.apache.hadoop.hive.metastore.api.TxnToWriteId;
import org.apache.hadoop.hive.ql.io.AcidOutputFormat;
import org.apache.hadoop.hive.ql.io.RecordUpdater;
import org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;

/**
 * What Hive's streaming API does, by Hive's own writer, as no registry has the API of Hive 4: "stream open TABLE
 * TRANSACTIONS" for a table of an INT and a STRING, then begin, "write 1,b", commit, abort and close; "stream leave"
 * lets go of everything as a program does that dies, and "stream abort-open" aborts whatever is open, as Hive does after
 * a while.
 */
public class Streaming {
  private static List<TxnToWriteId> left;
  private static TxnToWriteId current;
  private static RecordUpdater updater;

  public static List<Object> run(HiveConf conf, String action) throws Exception {
    String[] words = action.split(" ", 2);
    List<Object> rows = new ArrayList<>();
    HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
    switch (words[0]) {
      case "open":
        open(conf, client, words[1].split(" "));
        break;
      case "begin":
        current = left.remove(0);
        break;
      case "write": {
        String[] values = words[1].split(",", 2);
        updater.insert(current.getWriteId(), Arrays.asList(Integer.valueOf(values[0]), values[1]));
        break;
      }
      case "commit":
        updater.flush();
        client.commitTxn(current.getTxnId());
        break;
      case "abort":
        client.rollbackTxn(current.getTxnId());
        break;
      case "close":
        updater.close(false);
        for (TxnToWriteId one : left) {
          client.rollbackTxn(one.getTxnId());
        }
        break;
      case "leave":
        updater = null;
        break;
      case "abort-open": {
        List<Long> open = new ArrayList<>();
        for (TxnInfo one : client.showTxns().getOpen_txns()) {
          if (one.getState() == TxnState.OPEN) {
            open.add(one.getId());
          }
        }
        client.abortTxns(open);
        break;
      }
      default:
        throw new IllegalArgumentException(action);
    }
    client.close();
    return rows;
  }

  private static void open(HiveConf conf, HiveMetaStoreClient client, String[] words) throws Exception {
    List<Long> ids = client.openTxns("tests", Integer.parseInt(words[1])).getTxn_ids();
    left = new ArrayList<>(client.allocateTableWriteIdsBatch(ids, "default", words[0]));
    List<ObjectInspector> inspectors =
        Arrays.asList(
            PrimitiveObjectInspectorFactory.javaIntObjectInspector,
            PrimitiveObjectInspectorFactory.javaStringObjectInspector);
    AcidOutputFormat.Options options =
        new AcidOutputFormat.Options(conf)
            .inspector(ObjectInspectorFactory.getStandardStructObjectInspector(Arrays.asList("id", "name"), inspectors))
            .bucket(0)
            .minimumWriteId(left.get(0).getWriteId())
            .maximumWriteId(left.get(left.size() - 1).getWriteId())
            .statementId(-1)
            .writingBase(false)
            .tableProperties(new Properties());
    Path place = new Path(client.getTable("default", words[0]).getSd().getLocation());
    updater = new OrcOutputFormat().getRecordUpdater(place, options.finalDestination(place));
  }
}
