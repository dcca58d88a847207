import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.ql.DriverFactory;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.session.SessionState;

/**
 * One session of Hive 4: a JSON string with a statement, or a list with an action ({@link Actions}), on
 * each line of the input, a JSON object on each of the output. {@link Streaming} does what begins with "stream".
 */
public class Sql {
  private static final String CAPABILITIES =
      "EXTWRITE,EXTREAD,HIVEBUCKET2,HIVEFULLACIDREAD,HIVEFULLACIDWRITE,HIVECACHEINVALIDATE,HIVEMANAGESTATS,"
          + "HIVEMANAGEDINSERTWRITE,HIVEMANAGEDINSERTREAD,HIVESQL,HIVEMQT,HIVEONLYMQTWRITE";

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
    System.setOut(System.err);
    HiveMetaStoreClient.setProcessorIdentifier("tests"); // without, the metastore makes no transactional tables
    HiveMetaStoreClient.setProcessorCapabilities(CAPABILITIES.split(","));
    HiveConf conf = new HiveConf(Sql.class);
    SessionState session = new SessionState(conf);
    session.initTxnMgr(conf);
    SessionState.start(session);
    ObjectMapper json = new ObjectMapper();
    out.println("{}");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = in.readLine()) != null; ) {
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        Object asked = json.readValue(line, Object.class);
        answer.put("rows", asked instanceof String ? select(conf, (String) asked) : act(conf, asked));
      } catch (Throwable error) {
        answer.put("error", String.valueOf(error.getMessage()));
      }
      out.println(json.writeValueAsString(answer));
    }
    System.exit(0);
  }

  private static List<Object> select(HiveConf conf, String statement) throws Exception {
    if (statement.startsWith("set ")) {
      return Actions.set(conf, statement.substring(4));
    }
    if (statement.startsWith("stream ")) {
      return Streaming.run(conf, statement.substring(7));
    }
    try (IDriver driver = DriverFactory.newDriver(conf)) {
      driver.setMaxRows(1_000_000);
      driver.run(statement);
      List<Object> rows = new ArrayList<>();
      driver.getResults(rows);
      return rows;
    }
  }

  @SuppressWarnings("unchecked")
  private static List<Object> act(HiveConf conf, Object words) throws Exception {
    return Actions.run(conf, (List<String>) words);
  }
}
