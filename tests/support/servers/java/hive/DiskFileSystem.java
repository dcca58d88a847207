import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Principal;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local disk, whose permissions Java sets and reads itself: without Hadoop's native library, which Maven Central
 * does not have, Hadoop starts a chmod for every file it makes and an ls for many it lists, hundreds for a statement.
 */
public class DiskFileSystem extends LocalFileSystem {
  public DiskFileSystem() {
    super(new Disk());
  }

  static final class Disk extends RawLocalFileSystem {
    @Override
    public void setPermission(org.apache.hadoop.fs.Path path, FsPermission permission) throws IOException {
      Files.setAttribute(pathToFile(path).toPath(), "unix:mode", (int) permission.toShort());
    }

    @Override
    public FileStatus getFileLinkStatus(org.apache.hadoop.fs.Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath()) ? super.getFileLinkStatus(path) : getFileStatus(path);
    }

    @Override
    public FileStatus getFileStatus(org.apache.hadoop.fs.Path path) throws IOException {
      FileStatus found = super.getFileStatus(path);
      Path file = pathToFile(found.getPath()).toPath();
      Map<String, Object> more = Files.readAttributes(file, "unix:mode,owner,group");
      return new FileStatus(
          found.getLen(),
          found.isDirectory(),
          found.getReplication(),
          found.getBlockSize(),
          found.getModificationTime(),
          found.getAccessTime(),
          new FsPermission((short) ((Integer) more.get("mode") & 07777)),
          ((Principal) more.get("owner")).getName(),
          ((Principal) more.get("group")).getName(),
          found.getPath());
    }
  }
}
