import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;

/** A ResourceManager and NodeManagers by the configuration of the class path; it ends with its input. */
public class Yarn {
  /** Arguments: the folder of the nodes' files, and how many nodes. */
  public static void main(String[] arguments) {
    try {
      run(arguments);
    } catch (Throwable error) { // its threads would go on, and whoever waits for the first line with them
      error.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
    Runtime.getRuntime().halt(0);
  }

  private static void run(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true);
    System.setOut(System.err);
    DefaultMetricsSystem.setMiniClusterMode(true); // several nodes in one process
    ResourceManager manager = new ResourceManager();
    manager.init(new YarnConfiguration());
    manager.start();
    int nodes = Integer.parseInt(arguments[1]);
    for (int number = 0; number < nodes; number++) {
      YarnConfiguration conf = new YarnConfiguration();
      conf.set(YarnConfiguration.NM_LOCAL_DIRS, arguments[0] + "/node-" + number + "/local");
      conf.set(YarnConfiguration.NM_LOG_DIRS, arguments[0] + "/node-" + number + "/log");
      NodeManager node = new NodeManager();
      node.init(conf);
      node.start();
    }
    while (manager.getResourceScheduler().getNumClusterNodes() < nodes) {
      Thread.sleep(50);
    }
    out.println("up");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    while (in.readLine() != null) { // each line asks for the applications
      for (RMApp app : manager.getRMContext().getRMApps().values()) {
        out.println(app.getName() + "\t" + app.getQueue() + "\t" + app.getFinalApplicationStatus());
      }
      out.println();
    }
  }
}
