// A member of a group of JGroups 2.12 that sends a file to the others, or receives it: what hopcast's `nakack` is held
// against.
//
//   javac -cp jgroups-2.12.0.Final.jar Peer.java
//   java -Djava.net.preferIPv4Stack=true -cp jgroups-2.12.0.Final.jar:. Peer KEY=VALUE ...
//
// JGroups forms groups badly where packets are lost: members that find only each other become groups of their own, and
// merging takes it tens of seconds. So the sender is the coordinator: receivers join when they hear it call at the port
// after the group's, and one that has become a coordinator all the same leaves and joins again. The sender begins when
// all have told it that they have joined, since only then have they the digest from which they ask for what they miss.
//
// It says what happens on standard output, a JSON object in each line: "t" in seconds since the start, "event", and
// what belongs to the event. Hashes are FNV-1a of 64 bits. It exits with 0 if it got done what it was to do, with 1 if
// the time was over before that, and with 2 if a setting is wrong.

import java.io.IOException;
import java.io.OutputStream;
import java.net.DatagramPacket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.MulticastSocket;
import java.net.NetworkInterface;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.logging.Level;
import java.util.logging.Logger;

import org.jgroups.Address;
import org.jgroups.ChannelException;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.ReceiverAdapter;
import org.jgroups.View;
import org.jgroups.util.DefaultSocketFactory;

public final class Peer {
    static final String USAGE = String.join("\n",
        "Peer KEY=VALUE ...",
        "  role=send|receive",
        "  group=ADDRESS port=NUMBER    of the group; default: 239.192.0.1, 7600. At the next port the sender calls",
        "  interface=NAME address=ADDRESS   of the member; default: the first that has the address, and 127.0.0.1",
        "  ttl=NUMBER                   hop limit; default: 255",
        "  seconds=NUMBER               limit of the whole run; default: 60",
        "  retransmit=MS,MS,...         times between requests for a message; default: 300,600,1200, as shipped",
        "  multicast=no                 a message is sent again to the member that asked alone",
        "  credits=BYTES                of flow control; default: 2000000, as shipped",
        "sender:",
        "  file=FILE                    what it sends",
        "  members=NUMBER               number of members that it waits for; default: 1",
        "  rate=BITS-PER-SECOND         of UDP's payload, of new messages; default: 1000000",
        "  message=BYTES                of a message with the library's headers, which is a packet; default: 1400",
        "  start=SECONDS                minimum time before the first message; default: 0",
        "receiver:",
        "  into=FILE                    where what it receives goes",
        "  linger=SECONDS               time to stay after the end; default: 1");

    /** First byte of a message. */
    static final byte DATA = 'D', END = 'E', JOINED = 'J', COMPLETE = 'C';
    /** Bytes of a multicast message beside its payload: 55 of the library's, as captured, and the first of ours. */
    static final int OVERHEAD = 56;
    /** New messages in a period of the rate limiter. Chosen: it is a tenth of a second at 1 Mbit/s, and as long a burst. */
    static final int BURST = 10;
    /** Milliseconds between two messages that say the same until they are heard. */
    static final long AGAIN = 200;

    static final long STARTED = System.nanoTime();
    static final Map<String, String> SETTINGS = new TreeMap<>();

    public static void main(String[] words) throws Exception {
        for (String word : words) {
            int at = word.indexOf('=');
            if (at < 0) wrong("expected KEY=VALUE, not " + word);
            String key = word.substring(0, at);
            if (!USAGE.contains(" " + key + "=")) wrong("no such key: " + key);
            SETTINGS.put(key, word.substring(at + 1));
        }
        // What the library says of what it drops is for those who look after it.
        Logger.getLogger("org.jgroups").setLevel(Level.SEVERE);
        String role = text("role", "");
        if (!role.equals("send") && !role.equals("receive")) wrong("role: expected send or receive");
        int result = role.equals("send") ? new Sender().run() : new Receiver().run();
        // The library's threads do not end by themselves.
        System.out.flush();
        Runtime.getRuntime().halt(result);
    }

    /** The stack of the paper: reliable and in order, with views, flow control and a limit of the rate. */
    static String stack(boolean sender, long burstBytes, long burstMillis) {
        return String.join(":",
            "UDP(mcast_group_addr=" + text("group", "239.192.0.1") + ";mcast_port=" + whole("port", 7600)
                + ";bind_addr=" + text("address", "127.0.0.1") + ";ip_ttl=" + whole("ttl", 255)
                // A message is a packet.
                + ";enable_bundling=false;enable_diagnostics=false"
                + ";ucast_recv_buf_size=4M;mcast_recv_buf_size=4M;ucast_send_buf_size=640K;mcast_send_buf_size=640K"
                + ";thread_pool.queue_max_size=10000;oob_thread_pool.queue_max_size=10000)",
            "PING(timeout=1000;num_initial_members=" + (sender ? 1 : 2) + ")",
            "MERGE2(min_interval=10000;max_interval=30000)",
            "FD_SOCK",
            // A heartbeat in 3 s: where a fifth is lost, the shipped 10 s suspect a live member each minute or so.
            "FD_ALL(interval=3000;timeout=40000)",
            "VERIFY_SUSPECT(timeout=1500;num_msgs=3)",
            // A message is sent again by itself: several together would be fragments of IP.
            "pbcast.NAKACK(use_mcast_xmit=" + text("multicast", "yes").equals("yes")
                + ";gc_lag=0;discard_delivered_msgs=true;max_msg_batch_size=1;retransmit_timeout="
                + text("retransmit", "300,600,1200") + ")",
            "UNICAST(timeout=300,600,1200)",
            "pbcast.STABLE(stability_delay=1000;desired_avg_gossip=50000;max_bytes=4M)",
            "pbcast.GMS(print_local_addr=false;join_timeout=1000;view_bundling=true;disable_initial_coord="
                + !sender + ")",
            "UFC(max_credits=" + whole("credits", 2_000_000) + ";min_threshold=0.4)",
            "MFC(max_credits=" + whole("credits", 2_000_000) + ";min_threshold=0.4)",
            "FRAG2(frag_size=60000)",
            "RATE_LIMITER(max_bytes=" + burstBytes + ";time_period=" + burstMillis + ")");
    }

    /** Sends the file, and its end until all members have said that they have it. */
    static final class Sender extends ReceiverAdapter {
        private final Set<Address> joined = new HashSet<>(), complete = new HashSet<>();

        int run() throws Exception {
            byte[] file = Files.readAllBytes(Paths.get(text("file", "")));
            int members = (int) whole("members", 1), payload = (int) whole("message", 1400) - OVERHEAD;
            if (payload < 1) wrong("message: expected at least " + (OVERHEAD + 1));
            // A message that fills the limiter's period to the last byte waits for the next one.
            long burst = (long) BURST * (payload + 1) + 1;
            long millis = Math.max(1, Math.round(8000.0 * BURST * (payload + OVERHEAD) / number("rate", 1e6)));
            JChannel channel = channel(true, burst, millis);
            channel.setReceiver(this);
            channel.connect("hopcast");
            say("ready", "");

            try (Call call = new Call()) {
                while (size(joined) < members || seconds() < number("start", 0)) {
                    if (isOver()) return timeout();
                    call.say();
                    Thread.sleep(AGAIN);
                }
            }
            say("joined", ",\"members\":" + size(joined));
            for (int at = 0; at < file.length; at += payload) {
                if (isOver()) return timeout();
                int length = Math.min(payload, file.length - at);
                ByteBuffer message = ByteBuffer.allocate(1 + length).put(DATA).put(file, at, length);
                channel.send(new Message(null, null, message.array()));
            }
            String whole = ",\"size\":" + file.length + ",\"hash\":\"" + hex(hash(HASH, file, 0, file.length)) + "\"";
            say("sent", whole);
            // Nobody asks for the last message before a later one arrives.
            while (size(complete) < members) {
                if (isOver()) return timeout();
                byte[] end = ByteBuffer.allocate(9).put(END).putLong(file.length).array();
                channel.send(new Message(null, null, end));
                Thread.sleep(AGAIN);
            }
            say("done", "");
            return 0;
        }

        private static int size(Set<Address> members) {
            synchronized (members) {
                return members.size();
            }
        }

        @Override
        public void receive(Message message) {
            byte[] bytes = message.getBuffer();
            if (bytes == null || bytes.length == 0) return;
            Set<Address> those = bytes[0] == JOINED ? joined : bytes[0] == COMPLETE ? complete : null;
            if (those == null) return;
            synchronized (those) {
                those.add(message.getSrc());
            }
        }

        @Override
        public void viewAccepted(View view) {
            say("view", ",\"members\":" + view.size());
        }
    }

    /** Writes what it receives. */
    static final class Receiver extends ReceiverAdapter {
        private OutputStream file;
        private long received, sum = HASH;
        private Address sender;
        private boolean complete;

        int run() throws Exception {
            if (SETTINGS.containsKey("into")) file = Files.newOutputStream(Paths.get(text("into", "")));
            try (Call call = new Call()) {
                say("ready", "");
                while (!call.isHeard()) {
                    if (isOver()) return timeout();
                }
            }
            JChannel channel = channel(false, 500_000, 1000);
            channel.setReceiver(this);
            channel.connect("hopcast");
            double end = Double.MAX_VALUE;
            while (seconds() < end) {
                if (isOver()) return timeout();
                Address coordinator = channel.getView().getMembers().get(0);
                boolean alone = coordinator.equals(channel.getAddress());
                byte kind;
                synchronized (this) {
                    kind = complete ? COMPLETE : received == 0 ? JOINED : 0;
                    if (complete && end == Double.MAX_VALUE) end = seconds() + number("linger", 1);
                }
                if (alone && kind == JOINED) {
                    say("astray", "");
                    channel.disconnect();
                    channel.connect("hopcast");
                } else if (!alone && kind != 0) {
                    channel.send(new Message(coordinator, null, new byte[] {kind}));
                }
                Thread.sleep(AGAIN);
            }
            say("done", "");
            return 0;
        }

        @Override
        public synchronized void receive(Message message) {
            byte[] bytes = message.getBuffer();
            if (bytes == null || bytes.length == 0 || complete) return;
            try {
                if (bytes[0] == DATA) {
                    if (file != null) file.write(bytes, 1, bytes.length - 1);
                    sum = hash(sum, bytes, 1, bytes.length - 1);
                    received += bytes.length - 1;
                } else if (bytes[0] == END && bytes.length == 9) {
                    if (ByteBuffer.wrap(bytes, 1, 8).getLong() != received) return;
                    complete = true;
                    if (file != null) file.close();
                    say("complete", ",\"size\":" + received + ",\"hash\":\"" + hex(sum) + "\"");
                }
            } catch (IOException error) {
                wrong(error.toString());
            }
        }

        @Override
        public void viewAccepted(View view) {
            say("view", ",\"members\":" + view.size());
        }
    }

    /** The sender's call, by plain multicast, which the receivers wait for. */
    static final class Call implements AutoCloseable {
        private final MulticastSocket socket;
        private final InetSocketAddress group;

        Call() throws IOException {
            group = new InetSocketAddress(text("group", "239.192.0.1"), (int) whole("port", 7600) + 1);
            socket = new MulticastSocket(group.getPort());
            socket.setNetworkInterface(own());
            socket.setTimeToLive((int) whole("ttl", 255));
            socket.setSoTimeout((int) AGAIN);
            socket.joinGroup(group, own());
        }

        void say() throws IOException {
            socket.send(new DatagramPacket(new byte[1], 1, group));
        }

        /** Whether it is heard within a moment. */
        boolean isHeard() throws IOException {
            try {
                socket.receive(new DatagramPacket(new byte[1], 1));
                return true;
            } catch (SocketTimeoutException none) {
                return false;
            }
        }

        @Override
        public void close() {
            socket.close();
        }
    }

    /** The member's own interface: its address may be on several. */
    static NetworkInterface own() throws IOException {
        return SETTINGS.containsKey("interface")
            ? NetworkInterface.getByName(text("interface", ""))
            : NetworkInterface.getByInetAddress(InetAddress.getByName(text("address", "127.0.0.1")));
    }

    /** Sockets to groups that use the member's interface; the library's own use the first that has the address. */
    static final class Sockets extends DefaultSocketFactory {
        @Override
        public MulticastSocket createMulticastSocket(String service, int port) throws IOException {
            return new OnInterface(new InetSocketAddress(port));
        }

        @Override
        public MulticastSocket createMulticastSocket(String service, SocketAddress at) throws IOException {
            return new OnInterface(at);
        }
    }

    @SuppressWarnings("deprecation") // What the library calls is older than what replaces it.
    static final class OnInterface extends MulticastSocket {
        OnInterface(SocketAddress at) throws IOException {
            super(at);
        }

        @Override
        public void setInterface(InetAddress address) throws SocketException {
            try {
                setNetworkInterface(own());
            } catch (SocketException error) {
                throw error;
            } catch (IOException error) {
                throw new SocketException(error.toString());
            }
        }

        @Override
        public void joinGroup(InetAddress group) throws IOException {
            joinGroup(new InetSocketAddress(group, 0), own());
        }
    }

    static JChannel channel(boolean sender, long burstBytes, long burstMillis) throws ChannelException {
        JChannel channel = new JChannel(stack(sender, burstBytes, burstMillis));
        channel.getProtocolStack().getTransport().setSocketFactory(new Sockets());
        return channel;
    }

    static final long HASH = 0xcbf29ce484222325L;

    static long hash(long from, byte[] bytes, int at, int length) {
        for (int i = at; i < at + length; i++) from = (from ^ (bytes[i] & 0xff)) * 0x100000001b3L;
        return from;
    }

    static String hex(long number) {
        return String.format("%016x", number);
    }

    static double seconds() {
        return (System.nanoTime() - STARTED) * 1e-9;
    }

    static boolean isOver() {
        return seconds() > number("seconds", 60);
    }

    static int timeout() {
        say("timeout", "");
        return 1;
    }

    static synchronized void say(String event, String more) {
        System.out.printf(Locale.ROOT, "{\"t\":%.6f,\"event\":\"%s\"%s}%n", seconds(), event, more);
        System.out.flush();
    }

    static void wrong(String what) {
        System.err.println("jgroups-peer: " + what + "\n" + USAGE);
        Runtime.getRuntime().halt(2);
    }

    static String text(String key, String otherwise) {
        return SETTINGS.getOrDefault(key, otherwise);
    }

    static double number(String key, double otherwise) {
        try {
            return SETTINGS.containsKey(key) ? Double.parseDouble(text(key, "")) : otherwise;
        } catch (NumberFormatException error) {
            wrong(key + ": expected a number, not " + text(key, ""));
            return otherwise;
        }
    }

    static long whole(String key, long otherwise) {
        return (long) number(key, otherwise);
    }
}
