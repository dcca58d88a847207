import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Runs a main class in a URLClassLoader, which Hive 3 takes the application's to be; since Java 9 it is none. */
public class Launch {
  public static void main(String[] arguments) throws Exception {
    List<URL> urls = new ArrayList<>();
    for (String part : arguments[0].split(File.pathSeparator)) {
      if (part.endsWith("/*")) {
        for (File file : new File(part.substring(0, part.length() - 2)).listFiles()) {
          urls.add(file.toURI().toURL());
        }
      } else {
        urls.add(new File(part).toURI().toURL());
      }
    }
    ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    String[] rest = Arrays.copyOfRange(arguments, 2, arguments.length);
    loader.loadClass(arguments[1]).getMethod("main", String[].class).invoke(null, (Object) rest);
  }
}
