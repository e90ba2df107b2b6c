// A sender or receiver of PGM on OpenPGM: what hopcast's own is held against.
//
//   c++ -std=c++17 -O1 -I/usr/include/pgm-5.3 -o pgm-peer pgm.cc -lpgm
//   pgm-peer KEY=VALUE ...
//
// A file is sent as its bytes, in messages of a packet each. A receiver knows the end by `size`, and without that by
// `quiet`: OpenPGM announces the end of a session (OPT_FIN) and does not tell its own receivers.
//
// It exits with 0 if it got done what it was to do, with 1 if the time was over before that or data was lost, and with
// 2 if a setting is wrong.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

// After poll.h, without which it has no pgm_poll_info.
#include <pgm/pgm.h>

#include "peer.h"

namespace {

const char *const program = "pgm-peer";
const char *const usage =
    "pgm-peer KEY=VALUE ...\n"
    "  role=send|receive\n"
    "  group=ADDRESS interface=NAME address=ADDRESS   default: 239.192.0.1, the address's interface, and its first\n"
    "  port=NUMBER source-port=NUMBER   of the session; default: 7500 to port 7500, from a random one\n"
    "  udp=PORT unicast=PORT        of the encapsulation, and that to which requests go; default: 3056, and the same,\n"
    "                               since the library's sender listens at the first alone\n"
    "  raw=yes                      IP protocol 113 in place of UDP\n"
    "  alert=yes                    the router alert option on what network elements read\n"
    "  id=NUMBER                    of this member, the last bytes of its GSI; default: 1\n"
    "  mtu=BYTES                    of IP packets; default: 1500\n"
    "  window=PACKETS               to be repaired; default: 10000\n"
    "  seconds=NUMBER               limit of the whole run; default: 60\n"
    "  debug=MASK                   what the library says on standard error, its PGM_LOG_ROLE_*\n"
    "sender:\n"
    "  file=FILE                    what it sends\n"
    "  rate=BITS-PER-SECOND         of IP packets, by the library's token bucket of a second; default: 1000000\n"
    "  message=BYTES                of a message; default: what fits a packet\n"
    "  block=PACKETS parity=PACKETS proactive=PACKETS on-demand=no\n"
    "                               FEC: packets of a group, 2, 4, ..., 128; parity packets that a group has at most,\n"
    "                               those sent unasked, and whether they are asked for; default: no parity. OpenPGM\n"
    "                               5.3.128 sends one packet for a request of several, and crashes if it sends any\n"
    "                               unasked: its socket does not know the length of a group\n"
    "  fixed=yes                    parity without the lengths of packets, all of which must then be equal\n"
    "  pgmcc=yes                    congestion control\n"
    "  ambient=SECONDS              between SPMs; default: 0.25\n"
    "  start=SECONDS                when the first message is given; default: 2, since a receiver that has heard no\n"
    "                               SPM by then takes what it misses for lost\n"
    "  linger=SECONDS               it ends when it has heard nothing for this time; default: 5\n"
    "receiver:\n"
    "  into=FILE                    where what it receives goes\n"
    "  size=BYTES                   it is done when it has so many\n"
    "  quiet=SECONDS                it is done when nothing came for this time; default: 3, without a size\n"
    "  back-off=SECONDS repeat=SECONDS repair=SECONDS retries=NUMBER   of NAKs; default: 0.05, 2, 2, 50\n"
    "  linger=SECONDS               time to stay after the end; default: 0.5\n";

// The library takes whole numbers, and of times microseconds and no zero.
int whole(const Settings &settings, const char *key, int otherwise) {
    return static_cast<int>(settings.number(key, otherwise));
}

int micros(const Settings &settings, const char *key, double otherwise) {
    const double value = settings.number(key, otherwise) * 1e6;
    return value < 1 ? 1 : static_cast<int>(value);
}

// The interface and the address on it by which a member sends and receives: the settings, with what they leave out.
struct Place {
    unsigned index = 0;
    sockaddr_storage address = {};

    explicit Place(const Settings &settings) {
        const std::string name = settings.text("interface", "");
        in_addr own = {};
        if (settings.has("address") && inet_pton(AF_INET, settings.text("address", "").c_str(), &own) != 1)
            wrong("address: expected an IPv4 address");
        ifaddrs *list = nullptr;
        if (getifaddrs(&list) != 0) wrong("the system does not name its interfaces");
        for (const ifaddrs *each = list; each != nullptr && index == 0; each = each->ifa_next) {
            if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
            sockaddr_in found;
            memcpy(&found, each->ifa_addr, sizeof found);
            const bool fits = settings.has("address") ? found.sin_addr.s_addr == own.s_addr
                                                      : !name.empty() || (each->ifa_flags & IFF_LOOPBACK) == 0;
            if (!fits || (!name.empty() && name != each->ifa_name)) continue;
            index = if_nametoindex(each->ifa_name);
            found.sin_port = 0;
            memcpy(&address, &found, sizeof found);
        }
        freeifaddrs(list);
        if (index == 0) wrong("no such interface with such an IPv4 address");
    }
};

// A socket of the library, made from the settings.
class Member {
public:
    pgm_sock_t *socket = nullptr;
    int readable = -1;

    explicit Member(const Settings &settings) {
        const Place place(settings);
        const bool raw = settings.yes("raw");
        pgm_error_t *error = nullptr;
        must(pgm_socket(&socket, AF_INET, SOCK_SEQPACKET, raw ? IPPROTO_PGM : IPPROTO_UDP, &error), error);
        if (!raw) {
            const int port = whole(settings, "udp", 3056);
            set(PGM_UDP_ENCAP_UCAST_PORT, whole(settings, "unicast", port));
            set(PGM_UDP_ENCAP_MCAST_PORT, port);
        }
        set(PGM_IP_ROUTER_ALERT, settings.yes("alert") ? 1 : 0);
        set(PGM_MTU, whole(settings, "mtu", 1500));
        if (settings.text("role", "") == "send")
            set_sender(settings);
        else
            set_receiver(settings);

        pgm_sockaddr_t name = {};
        const uint32_t id = htonl(static_cast<uint32_t>(settings.number("id", 1)));
        memcpy(name.sa_addr.gsi.identifier + 2, &id, sizeof id);
        name.sa_port = static_cast<uint16_t>(whole(settings, "port", 7500));
        name.sa_addr.sport = static_cast<uint16_t>(whole(settings, "source-port", 0));
        pgm_interface_req_t at = {};
        at.ir_interface = place.index;
        at.ir_address = place.address;
        must(pgm_bind3(socket, &name, sizeof name, &at, sizeof at, &at, sizeof at, &error), error);

        sockaddr_in group = {};
        group.sin_family = AF_INET;
        if (inet_pton(AF_INET, settings.text("group", "239.192.0.1").c_str(), &group.sin_addr) != 1)
            wrong("group: expected an IPv4 address");
        pgm_group_source_req join = {};
        join.gsr_interface = place.index;
        memcpy(&join.gsr_group, &group, sizeof group);
        memcpy(&join.gsr_source, &group, sizeof group);
        join.gsr_addr = place.address;
        set(PGM_JOIN_GROUP, join);
        set(PGM_SEND_GROUP, join);
        set(PGM_MULTICAST_LOOP, 0);
        set(PGM_MULTICAST_HOPS, 255);
        set(PGM_NOBLOCK, 1);
        must(pgm_connect(socket, &error), error);
        readable = get<int>(PGM_RECV_SOCK);
        // The system's limit may be lower than what is asked for here.
        const int buffer = 4 << 20;
        setsockopt(readable, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }

    template <typename T>
    void set(int option, const T &value) {
        if (!pgm_setsockopt(socket, IPPROTO_PGM, option, &value, sizeof value))
            wrong("the library refuses option " + std::to_string(option));
    }

    template <typename T>
    T get(int option) {
        T value = {};
        socklen_t len = sizeof value;
        pgm_getsockopt(socket, IPPROTO_PGM, option, &value, &len);
        return value;
    }

    // Seconds until the library has something to do, after it has answered with `status`.
    double remaining(int status) {
        if (status != PGM_IO_STATUS_RATE_LIMITED && status != PGM_IO_STATUS_TIMER_PENDING) return 3600;
        const bool limited = status == PGM_IO_STATUS_RATE_LIMITED;
        const timeval left = get<timeval>(limited ? PGM_RATE_REMAIN : PGM_TIME_REMAIN);
        return static_cast<double>(left.tv_sec) + static_cast<double>(left.tv_usec) * 1e-6;
    }

private:
    void set_sender(const Settings &settings) {
        set(PGM_SEND_ONLY, 1);
        set(PGM_TXW_SQNS, whole(settings, "window", 10000));
        // In bytes, and no less than a packet.
        set(PGM_TXW_MAX_RTE, static_cast<int>(settings.number("rate", 1e6) / 8));
        set(PGM_AMBIENT_SPM, micros(settings, "ambient", 0.25));
        // After the last packet, as in the library's examples; the ambient ones follow.
        const int heartbeats[] = {100000, 100000, 100000, 100000, 1000000};
        set(PGM_HEARTBEAT_SPM, heartbeats);
        if (settings.has("block")) {
            pgm_fecinfo_t fec = {};
            const int block = whole(settings, "block", 8);
            fec.group_size = static_cast<uint8_t>(block);
            fec.block_size = static_cast<uint8_t>(block + whole(settings, "parity", block));
            fec.proactive_packets = static_cast<uint8_t>(whole(settings, "proactive", 0));
            fec.ondemand_parity_enabled = settings.yes("on-demand", true);
            fec.var_pktlen_enabled = !settings.yes("fixed");
            set(PGM_USE_FEC, fec);
        }
        set_control(settings);
    }

    void set_receiver(const Settings &settings) {
        set(PGM_RECV_ONLY, 1);
        set(PGM_PASSIVE, 0);
        set(PGM_RXW_SQNS, whole(settings, "window", 10000));
        set(PGM_PEER_EXPIRY, 300 * 1000000);
        set(PGM_SPMR_EXPIRY, 250000);
        set(PGM_NAK_BO_IVL, micros(settings, "back-off", 0.05));
        set(PGM_NAK_RPT_IVL, micros(settings, "repeat", 2));
        set(PGM_NAK_RDATA_IVL, micros(settings, "repair", 2));
        set(PGM_NAK_DATA_RETRIES, whole(settings, "retries", 50));
        set(PGM_NAK_NCF_RETRIES, whole(settings, "retries", 50));
        set_control(settings);
    }

    void set_control(const Settings &settings) {
        if (settings.yes("pgmcc")) {
            // The library's own test has these.
            pgm_pgmccinfo_t control = {};
            control.ack_bo_ivl = 50000;
            control.ack_c = 75;
            control.ack_c_p = 500;
            set(PGM_USE_PGMCC, control);
        }
    }

    static void must(bool done, const pgm_error_t *error) {
        if (!done) wrong(error != nullptr && error->message != nullptr ? error->message : "the library refuses it");
    }
};

// Waits for `seconds`, or until something has arrived, which it returns.
bool wait_for(pollfd *sockets, nfds_t count, double seconds) {
    if (seconds < 50e-6) seconds = 50e-6;
    timespec limit;
    limit.tv_sec = static_cast<time_t>(seconds);
    limit.tv_nsec = static_cast<long>((seconds - static_cast<double>(limit.tv_sec)) * 1e9);
    return ppoll(sockets, count, &limit, nullptr) > 0;
}

int send(Member &member, const Settings &settings, double until) {
    const std::string bytes = contents(settings.text("file", ""));
    const size_t fits = static_cast<size_t>(member.get<int>(PGM_MSSS)) -
                        // Parity carries the length of a packet after its bytes.
                        (settings.has("block") && !settings.yes("fixed") ? 2 : 0);
    const size_t message = static_cast<size_t>(settings.number("message", static_cast<double>(fits)));
    if (message == 0 || message > fits) wrong("message: expected 1 to " + std::to_string(fits));
    // OpenPGM 5.3.128, as Debian builds it, crashes if what it copies is not aligned to 16 bytes.
    // The option of congestion control, of 20 bytes, shifts where it copies to: what it copies must be as far from 16.
    void *block = nullptr;
    if (posix_memalign(&block, 64, message + 16) != 0) return 1;
    char *aligned = static_cast<char *>(block) + (settings.yes("pgmcc") ? 4 : 0);
    say("ready", ",\"message\":%zu", message);

    const double begin = started + settings.number("start", 2);
    const double linger = settings.number("linger", 5);
    double heard = 0;
    size_t given = 0;
    char nothing[65536];
    for (;;) {
        pgm_error_t *error = nullptr;
        // What arrives at a sender is requests, which the library answers in here.
        const int served = pgm_recv(member.socket, nothing, sizeof nothing, MSG_DONTWAIT, nullptr, &error);
        if (served == PGM_IO_STATUS_ERROR)
            fprintf(stderr, "pgm-peer: %s\n", error != nullptr ? error->message : "error");
        pgm_clear_error(&error);
        double left = member.remaining(served);

        const double time = now();
        if (time < begin) {
            left = left < begin - time ? left : begin - time;
        } else if (given < bytes.size()) {
            const size_t len = bytes.size() - given < message ? bytes.size() - given : message;
            memcpy(aligned, bytes.data() + given, len);
            const int sent = pgm_send(member.socket, aligned, len, nullptr);
            if (sent == PGM_IO_STATUS_NORMAL) {
                given += len;
                if (given == bytes.size()) {
                    heard = time;
                    say("sent", ",\"size\":%zu,\"hash\":\"%016llx\"", given,
                        static_cast<unsigned long long>(hash(bytes.data(), given)));
                }
                continue;
            }
            if (sent == PGM_IO_STATUS_ERROR) {
                say("error");
                return 1;
            }
            // Blocked by congestion control or by the interface: the next acknowledgement, or a moment, changes that.
            const double next = sent == PGM_IO_STATUS_RATE_LIMITED ? member.remaining(sent) : 0.001;
            left = left < next ? left : next;
        } else if (time - heard > linger) {
            break;
        }
        if (time > until) {
            say("timeout");
            return 1;
        }
        pollfd readable = {member.readable, POLLIN, 0};
        if (wait_for(&readable, 1, left < 0.1 ? left : 0.1)) heard = now();
    }
    pgm_close(member.socket, true);
    say("done");
    return 0;
}

int receive(Member &member, const Settings &settings, double until) {
    const bool counted = settings.has("size");
    const uint64_t size = static_cast<uint64_t>(settings.number("size", 0));
    const double quiet = settings.number("quiet", counted ? 1e9 : 3);
    FILE *file = nullptr;
    if (settings.has("into")) {
        file = fopen(settings.text("into", "").c_str(), "wb");
        if (file == nullptr) wrong("cannot write " + settings.text("into", ""));
    }
    say("ready");

    uint64_t received = 0, sum = NO_HASH;
    double last = 0, end = until;
    bool complete = false, lost = false;
    static char buffer[65536];
    for (;;) {
        pgm_sockaddr_t from;
        socklen_t from_len = sizeof from;
        size_t len = 0;
        pgm_error_t *error = nullptr;
        const int got =
            pgm_recvfrom(member.socket, buffer, sizeof buffer, MSG_DONTWAIT, &len, &from, &from_len, &error);
        const double time = now();
        if (got == PGM_IO_STATUS_NORMAL) {
            if (received == 0) {
                char name[PGM_TSISTRLEN];
                pgm_tsi_print_r(&from.sa_addr, name, sizeof name);
                say("source", ",\"name\":\"%s\"", name);
            }
            if (file != nullptr) fwrite(buffer, 1, len, file);
            sum = hash(buffer, len, sum);
            received += len;
            last = time;
        } else if (got == PGM_IO_STATUS_RESET) {
            lost = true;
            say("lost", ",\"after\":%llu", static_cast<unsigned long long>(received));
        } else if (got == PGM_IO_STATUS_ERROR) {
            fprintf(stderr, "pgm-peer: %s\n", error != nullptr ? error->message : "error");
        }
        pgm_clear_error(&error);
        if (!complete && received > 0 && ((counted && received >= size) || time - last > quiet)) {
            complete = true;
            if (file != nullptr) fclose(file);
            file = nullptr;
            say("complete", ",\"size\":%llu,\"hash\":\"%016llx\"", static_cast<unsigned long long>(received),
                static_cast<unsigned long long>(sum));
            end = time + settings.number("linger", 0.5);
        }
        if (time > end || time > until) break;
        if (got == PGM_IO_STATUS_NORMAL || got == PGM_IO_STATUS_RESET) continue;
        if (file != nullptr) fflush(file);
        pollfd sockets[PGM_RECV_SOCKET_READ_COUNT];
        int count = PGM_RECV_SOCKET_READ_COUNT;
        if (pgm_poll_info(member.socket, sockets, &count, POLLIN) < 0) count = 0;
        const double left = member.remaining(got);
        wait_for(sockets, static_cast<nfds_t>(count), left < 0.1 ? left : 0.1);
    }
    const bool done = complete && !lost && (!counted || received == size);
    say(done ? "done" : complete ? "broken" : "timeout");
    return done ? 0 : 1;
}

}  // namespace

int main(int count, char **words) {
    const Settings settings(count, words);
    const std::string role = settings.text("role", "");
    if (role != "send" && role != "receive") wrong("role: expected send or receive");
    pgm_error_t *error = nullptr;
    pgm_messages_init();
    if (settings.has("debug")) {
        pgm_log_mask = whole(settings, "debug", 0);
        pgm_min_log_level = PGM_LOG_LEVEL_TRACE;
    } else {
        pgm_min_log_level = PGM_LOG_LEVEL_ERROR;
    }
    // Its log is standard output, where the events are.
    pgm_log_set_handler([](const int, const char *line, void *) { fprintf(stderr, "%s\n", line); }, nullptr);
    if (!pgm_init(&error)) wrong(error != nullptr ? error->message : "the library does not start");
    Member member(settings);
    const double until = started + settings.number("seconds", 60);
    return role == "send" ? send(member, settings, until) : receive(member, settings, until);
}
