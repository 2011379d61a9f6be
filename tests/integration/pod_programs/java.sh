cat > A.java <<'END'
import java.net.ServerSocket;
import java.nio.file.*;

public class A {
	public static void main(String[] words) throws Exception {
		Thread t = new Thread(() -> System.out.println("hello"));
		t.start();
		t.join();
		new ProcessBuilder("true").start().waitFor();
		new ServerSocket(0).close();
		FileSystems.getDefault().newWatchService().close();
		System.gc();
		if (!System.getProperty("user.name").equals("agent"))
			throw new Exception(System.getProperty("user.name"));
	}
}
END
java A.java
