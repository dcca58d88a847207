import java.io.File;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;

/** Several DataNodes in one process. Arguments: a folder for their blocks, and how many. */
public class DataNodes {
  public static void main(String[] arguments) throws Exception {
    DefaultMetricsSystem.setMiniClusterMode(true);
    for (int number = 0; number < Integer.parseInt(arguments[1]); number++) {
      HdfsConfiguration conf = new HdfsConfiguration();
      for (String name : new String[] {"address", "http.address", "ipc.address"}) {
        conf.set("dfs.datanode." + name, "127.0.0.1:0");
      }
      conf.set("dfs.datanode.data.dir", new File(arguments[0], "blocks-" + number).toURI().toString());
      DataNode.createDataNode(new String[0], conf);
    }
    Thread.currentThread().join();
  }
}
