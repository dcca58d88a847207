import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** {@link DiskFileSystem} for those who ask for a FileContext, as Tez does for what its containers need. */
public class DiskContext extends DelegateToFileSystem {
  public DiskContext(URI name, Configuration conf) throws IOException, URISyntaxException {
    super(name, new DiskFileSystem.Disk(), conf, "file", false);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }
}
