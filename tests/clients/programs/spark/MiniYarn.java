import java.io.FileWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * YARN with one node, for tests. Its configuration is written into the folder that the argument names; it runs until its
 * standard input ends.
 */
public final class MiniYarn {
    public static void main(final String[] arguments) throws Exception {
        final YarnConfiguration settings = new YarnConfiguration();
        settings.set("fs.defaultFS", "file:///");
        settings.set("yarn.resourcemanager.scheduler.class",
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler");
        settings.setInt("yarn.scheduler.minimum-allocation-mb", 128);
        // What a container takes of the machine, and how full a disk is, is no matter of these tests.
        settings.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        settings.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        settings.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100");
        final MiniYARNCluster cluster = new MiniYARNCluster("mini", 1, 1, 1);
        cluster.init(settings);
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(120_000)) {
            throw new IllegalStateException("the node has not connected");
        }
        final Path folder = Paths.get(arguments[0]);
        try (FileWriter out = new FileWriter(folder.resolve("yarn-site.xml").toFile())) {
            cluster.getConfig().writeXml(out);
        }
        Files.writeString(folder.resolve("core-site.xml"),
            "<configuration><property><name>fs.defaultFS</name><value>file:///</value></property></configuration>");
        System.out.println("YARN is up");
        while (System.in.read() >= 0) {
            continue;
        }
        cluster.stop();
        System.exit(0);
    }
}
