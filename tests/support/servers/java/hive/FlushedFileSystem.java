import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;

/** The same without checksums, so that what a writer flushes is there, as in HDFS. */
public class FlushedFileSystem extends DiskFileSystem {
  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setWriteChecksum(false);
  }
}
