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
import org.apache.hadoop.hive.ql.DriverFactory;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.processors.CommandProcessorResponse;
import org.apache.hadoop.hive.ql.session.SessionState;

/**
 * One session of Hive 3: a JSON string with a statement on each line of the input, a JSON object on each of the output.
 * "set NAME=VALUE" is done here, "stream ..." by Streaming.
 */
public class Sql {
  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
    System.setOut(System.err);
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
        String statement = json.readValue(line, String.class);
        if (statement.startsWith("set ")) {
          String[] parts = statement.substring(4).split("=", 2);
          conf.set(parts[0].trim(), parts[1].trim());
          out.println("{\"rows\": []}");
          continue;
        }
        if (statement.startsWith("stream ")) {
          answer.put("rows", Streaming.run(conf, statement.substring(7)));
          out.println(json.writeValueAsString(answer));
          continue;
        }
        IDriver driver = DriverFactory.newDriver(conf);
        driver.setMaxRows(1_000_000);
        CommandProcessorResponse response = driver.run(statement);
        if (response.getResponseCode() == 0) {
          List<Object> rows = new ArrayList<>();
          driver.getResults(rows);
          answer.put("rows", rows);
        } else {
          answer.put("error", response.getErrorMessage());
        }
        driver.close();
      } catch (Throwable error) {
        answer.put("error", String.valueOf(error.getMessage()));
      }
      out.println(json.writeValueAsString(answer));
    }
    System.exit(0);
  }
}
