import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.TxnInfo;
import org.apache.hadoop.hive.metastore.api.TxnState;
import org.apache.hive.streaming.HiveStreamingConnection;
import org.apache.hive.streaming.StrictDelimitedInputWriter;

/**
 * Hive's streaming API, one connection: "stream open TABLE TRANSACTIONS [VALUE,...]", then begin, "write a,b", commit,
 * abort and close; "stream leave" lets go of the connection as a program does that dies, and "stream abort-open" aborts
 * whatever is open, as Hive does after a while.
 */
public class Streaming {
  private static HiveStreamingConnection connection;

  public static List<Object> run(HiveConf conf, String action) throws Exception {
    String[] words = action.split(" ", 2);
    List<Object> rows = new ArrayList<>();
    switch (words[0]) {
      case "open": {
        String[] parts = words[1].split(" ");
        HiveStreamingConnection.Builder builder =
            HiveStreamingConnection.newBuilder()
                .withDatabase("default")
                .withTable(parts[0])
                .withTransactionBatchSize(Integer.parseInt(parts[1]))
                .withAgentInfo("tests")
                .withHiveConf(new HiveConf(conf))
                .withRecordWriter(StrictDelimitedInputWriter.newBuilder().withFieldDelimiter(',').build());
        if (parts.length > 2) {
          builder.withStaticPartitionValues(Arrays.asList(parts[2].split(",")));
        }
        connection = builder.connect();
        break;
      }
      case "begin":
        connection.beginTransaction();
        break;
      case "write":
        connection.write(words[1].getBytes(StandardCharsets.UTF_8));
        break;
      case "commit":
        connection.commitTransaction();
        break;
      case "abort":
        connection.abortTransaction();
        break;
      case "close":
        connection.close();
        break;
      case "leave":
        connection = null;
        break;
      case "abort-open": {
        HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
        List<Long> open = new ArrayList<>();
        for (TxnInfo one : client.showTxns().getOpen_txns()) {
          if (one.getState() == TxnState.OPEN) {
            open.add(one.getId());
          }
        }
        client.abortTxns(open);
        client.close();
        break;
      }
      default:
        throw new IllegalArgumentException(action);
    }
    return rows;
  }
}
