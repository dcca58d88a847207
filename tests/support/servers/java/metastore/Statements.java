import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;

/** Runs the statements on the lines of a file, on the database of a JDBC address. */
public class Statements {
  public static void main(String[] arguments) throws Exception {
    try (Connection connection = DriverManager.getConnection(arguments[0]);
        Statement statement = connection.createStatement()) {
      for (String line : Files.readAllLines(Paths.get(arguments[1]), StandardCharsets.UTF_8)) {
        statement.execute(line);
      }
    }
  }
}
