// A sender or receiver of NORM on libnorm: what hopcast's own is held against.
//
//   c++ -O1 -o norm-peer norm.cc -lnorm
//   norm-peer KEY=VALUE ...
//
// It exits with 0 if it got done what it was to do, with 1 if the time was over before that, and with 2 if a setting is
// wrong.
#include <normApi.h>

#include <poll.h>

#include <set>

#include "peer.h"

namespace {

const char *const program = "norm-peer";
const char *const usage =
    "norm-peer KEY=VALUE ...\n"
    "  role=send|receive\n"
    "  group=ADDRESS port=NUMBER interface=NAME   session; default: 224.1.2.3, 6003, the system's\n"
    "  id=NUMBER                    of this member; default: 1\n"
    "  loss=PERCENT                 of what arrives here is dropped by the library\n"
    "  seconds=NUMBER               limit of the whole run; default: 60\n"
    "  hash=no                      hashes are left out, since they take time\n"
    "  debug=LEVEL                  what the library says on standard error, 0 to 12\n"
    "sender:\n"
    "  data=FILE file=FILE stream=FILE   objects, in this order, each any number of times\n"
    "  info=TEXT                    of the objects that follow; of a file its name, if nothing else is said\n"
    "  instance=NUMBER rate=BITS-PER-SECOND segment=BYTES block=SYMBOLS parity=SYMBOLS auto-parity=SYMBOLS fec=ID\n"
    "  buffer=BYTES                 of the sender, and of a stream; default: 4194304\n"
    "  message=BYTES                a stream is written in messages of this length; default: 1000\n"
    "  grtt=SECONDS probing=none|passive|active backoff=GRTTS group-size=NUMBER robust=NUMBER\n"
    "  cc=yes min-rate=BITS-PER-SECOND max-rate=BITS-PER-SECOND    congestion control\n"
    "  ecn=yes                      congestion control reads marks too\n"
    "  cache=NUMBER                 objects that it keeps for repair; default: libnorm's\n"
    "  acknowledge=ID               a receiver that is to acknowledge; any number of times\n"
    "  command=TEXT                 of the application, sent first\n"
    "  start=SECONDS                when the first object is given; default: 0.2\n"
    "  linger=SECONDS               time to go on repairing after all is sent; default: 2\n"
    "receiver:\n"
    "  objects=NUMBER               it is done when this many are complete; default: 1\n"
    "  into=DIRECTORY               where files go; default: .\n"
    "  unicast-nacks=yes silent=yes sync=current|stream|all robust=NUMBER buffer=BYTES\n"
    "  linger=SECONDS               time to stay after the last object; default: 0.5\n";

bool hashing = true;

// Like `hash`, unless hashes are to be left out.
uint64_t hash_of(const char *bytes, size_t len, uint64_t from = NO_HASH) {
    return hashing ? hash(bytes, len, from) : 0;
}

std::string quoted(const std::string &text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        char code[8];
        if (c == '"' || c == '\\' || c < 0x20 || c > 0x7e) {
            snprintf(code, sizeof code, "\\u%04x", c);
            out += code;
        } else {
            out += static_cast<char>(c);
        }
    }
    return out + "\"";
}

struct Object {
    std::string kind, path, info;
};

// The objects to be sent, in their order.
std::vector<Object> objects_of(const Settings &settings) {
    std::vector<Object> objects;
    std::string info;
    for (const auto &[key, value] : settings.ordered) {
        if (key == "info")
            info = value;
        else if (key == "data" || key == "file" || key == "stream")
            objects.push_back({key, value, info});
    }
    return objects;
}

const char *kind_of(NormObjectHandle object) {
    switch (NormObjectGetType(object)) {
    case NORM_OBJECT_DATA: return "data";
    case NORM_OBJECT_FILE: return "file";
    case NORM_OBJECT_STREAM: return "stream";
    default: return "none";
    }
}

// Waits for an event until `until`; false if there was none.
bool next_event(NormInstanceHandle instance, double until, NormEvent &event) {
    for (;;) {
        if (NormGetNextEvent(instance, &event, false) && event.type != NORM_EVENT_INVALID) return true;
        const double left = until - now();
        if (left <= 0) return false;
        pollfd readable = {NormGetDescriptor(instance), POLLIN, 0};
        // Rounded up, so that the last millisecond is not spent in turning round.
        poll(&readable, 1, static_cast<int>(left < 1 ? left * 1000 + 1 : 1000));
    }
}

class Sender {
    NormInstanceHandle instance;
    NormSessionHandle session;
    const Settings &settings;
    const std::vector<Object> objects;
    size_t next = 0;
    NormObjectHandle last = NORM_OBJECT_INVALID, stream = NORM_OBJECT_INVALID;
    std::vector<std::string> kept;  // libnorm sends data objects from this memory
    std::string streaming;
    size_t written = 0;
    bool flushed = false, acknowledged = true, finished = false;

public:
    Sender(NormInstanceHandle instance, NormSessionHandle session, const Settings &settings)
        : instance(instance), session(session), settings(settings), objects(objects_of(settings)) {
        kept.reserve(objects.size());
        NormSetTxRate(session, settings.number("rate", 1e6));
        NormSetGrttEstimate(session, settings.number("grtt", 0.25));
        const std::string probing = settings.text("probing", "active");
        NormSetGrttProbingMode(session, probing == "none"      ? NORM_PROBE_NONE
                                        : probing == "passive" ? NORM_PROBE_PASSIVE
                                                               : NORM_PROBE_ACTIVE);
        NormSetBackoffFactor(session, settings.number("backoff", 4));
        NormSetGroupSize(session, static_cast<unsigned>(settings.number("group-size", 1000)));
        NormSetTxRobustFactor(session, static_cast<int>(settings.number("robust", 20)));
        NormSetAutoParity(session, static_cast<unsigned char>(settings.number("auto-parity", 0)));
        if (settings.yes("ecn")) NormSetEcnSupport(session, true);
        if (settings.yes("cc")) {
            NormSetCongestionControl(session, true);
            NormSetTxRateBounds(session, settings.number("min-rate", -1), settings.number("max-rate", -1));
        }
        if (settings.has("cache")) {
            const UINT32 cache = static_cast<UINT32>(settings.number("cache", 0));
            NormSetTxCacheBounds(session, 1, cache, cache);
        }
        if (settings.has("acknowledge")) {
            acknowledged = false;
            for (const std::string &id : settings.values.at("acknowledge"))
                NormAddAckingNode(session, static_cast<NormNodeId>(strtoul(id.c_str(), nullptr, 10)));
        }
        const bool ok = NormStartSender(session, static_cast<NormSessionId>(settings.number("instance", 1)),
                                        static_cast<UINT32>(settings.number("buffer", 4194304)),
                                        static_cast<UINT16>(settings.number("segment", 1400)),
                                        static_cast<UINT16>(settings.number("block", 64)),
                                        static_cast<UINT16>(settings.number("parity", 16)),
                                        static_cast<UINT8>(settings.number("fec", 0)));
        if (!ok) wrong("libnorm does not start a sender with these settings");
        const std::string command = settings.text("command", "");
        if (!command.empty()) NormSendCommand(session, command.data(), static_cast<unsigned>(command.size()), true);
    }

    int run(double until) {
        double wake = started + settings.number("start", 0.2);
        bool waiting = true;
        for (;;) {
            NormEvent event;
            if (next_event(instance, wake < until ? wake : until, event)) {
                on(event);
            } else if (now() >= until) {
                say("timeout");
                return 1;
            } else if (waiting) {
                waiting = false;
                wake = until;
                proceed();
            } else if (finished) {
                break;
            }
            if (!finished && !waiting && flushed && acknowledged && all_given()) {
                finished = true;
                wake = now() + settings.number("linger", 2);
            }
        }
        NormStopSender(session);
        say("done");
        return 0;
    }

private:
    bool all_given() const { return next == objects.size() && stream == NORM_OBJECT_INVALID; }

    // Gives the library what it takes now.
    void proceed() {
        for (;;) {
            if (stream != NORM_OBJECT_INVALID) {
                if (!write_on()) return;
                continue;
            }
            if (next == objects.size()) return;
            const Object &object = objects[next];
            flushed = false;
            if (!give(object)) return;
            next++;
            if (next == objects.size() && stream == NORM_OBJECT_INVALID && settings.has("acknowledge"))
                NormSetWatermark(session, last);
        }
    }

    bool give(const Object &object) {
        const char *info = object.info.c_str();
        unsigned info_len = static_cast<unsigned>(object.info.size());
        std::string bytes = contents(object.path);
        if (object.kind == "data") {
            kept.push_back(std::move(bytes));
            const std::string &own = kept.back();
            last = NormDataEnqueue(session, own.data(), static_cast<UINT32>(own.size()), info, info_len);
            if (last == NORM_OBJECT_INVALID) {
                kept.pop_back();
                return false;
            }
            say("given", ",\"kind\":\"data\",\"size\":%zu,\"hash\":\"%016llx\"", own.size(),
                static_cast<unsigned long long>(hash_of(own.data(), own.size())));
        } else if (object.kind == "file") {
            const std::string name = object.path.substr(object.path.rfind('/') + 1);
            if (info_len == 0) {
                info = name.c_str();
                info_len = static_cast<unsigned>(name.size());
            }
            last = NormFileEnqueue(session, object.path.c_str(), info, info_len);
            if (last == NORM_OBJECT_INVALID) return false;
            say("given", ",\"kind\":\"file\",\"size\":%zu,\"hash\":\"%016llx\"", bytes.size(),
                static_cast<unsigned long long>(hash_of(bytes.data(), bytes.size())));
        } else {
            const UINT32 buffer = static_cast<UINT32>(settings.number("buffer", 4194304));
            last = stream = NormStreamOpen(session, buffer, info, info_len);
            if (stream == NORM_OBJECT_INVALID) return false;
            streaming = std::move(bytes);
            written = 0;
        }
        return true;
    }

    // Writes messages of the stream; false if the library takes no more now.
    bool write_on() {
        const size_t message = static_cast<size_t>(settings.number("message", 1000));
        while (written < streaming.size()) {
            const size_t end = (written / message + 1) * message;
            const size_t len = (end < streaming.size() ? end : streaming.size()) - written;
            const unsigned taken = NormStreamWrite(stream, streaming.data() + written, static_cast<unsigned>(len));
            written += taken;
            if (taken < len) return false;
            NormStreamMarkEom(stream);
        }
        NormStreamFlush(stream, true);
        say("given", ",\"kind\":\"stream\",\"size\":%zu,\"hash\":\"%016llx\"", streaming.size(),
            static_cast<unsigned long long>(hash_of(streaming.data(), streaming.size())));
        if (settings.has("acknowledge")) NormSetWatermark(session, stream);
        NormStreamClose(stream, true);
        stream = NORM_OBJECT_INVALID;
        return true;
    }

    void on(const NormEvent &event) {
        switch (event.type) {
        case NORM_TX_QUEUE_VACANCY:
        case NORM_TX_QUEUE_EMPTY:
            proceed();
            break;
        case NORM_TX_OBJECT_SENT: say("sent", ",\"kind\":\"%s\"", kind_of(event.object)); break;
        case NORM_TX_OBJECT_PURGED: say("purged"); break;
        case NORM_TX_CMD_SENT: say("command-sent"); break;
        case NORM_TX_FLUSH_COMPLETED:
            if (!flushed) say("flushed");
            flushed = true;
            break;
        case NORM_TX_WATERMARK_COMPLETED: {
            NormNodeId node = NORM_NODE_NONE;
            NormAckingStatus status;
            NormGetNextAckingNode(session, nullptr);
            while (NormGetNextAckingNode(session, &node, &status)) {
                const bool ok = status == NORM_ACK_SUCCESS;
                say("acknowledged", ",\"node\":%u,\"ok\":%s", node, ok ? "true" : "false");
            }
            acknowledged = true;
            break;
        }
        case NORM_GRTT_UPDATED: say("grtt", ",\"seconds\":%.6f", NormGetGrttEstimate(session)); break;
        case NORM_TX_RATE_CHANGED: say("rate", ",\"bits_per_second\":%.0f", NormGetTxRate(session)); break;
        case NORM_SEND_ERROR: say("send-error"); break;
        default: break;
        }
    }
};

class Receiver {
    struct Progress {
        uint64_t size = 0, hash = hash_of("", 0);
        bool broken = false;
    };
    NormInstanceHandle instance;
    const Settings &settings;
    std::map<NormObjectHandle, Progress> streams;
    // Streams that have ended, which libnorm may say more than once.
    std::set<NormObjectHandle> ended;
    unsigned complete = 0;

public:
    Receiver(NormInstanceHandle instance, NormSessionHandle session, const Settings &settings)
        : instance(instance), settings(settings) {
        if (!NormSetCacheDirectory(instance, settings.text("into", ".").c_str())) wrong("into: no such directory");
        NormSetDefaultUnicastNack(session, settings.yes("unicast-nacks"));
        NormSetSilentReceiver(session, settings.yes("silent"));
        NormSetDefaultRxRobustFactor(session, static_cast<int>(settings.number("robust", 20)));
        const std::string sync = settings.text("sync", "current");
        NormSetDefaultSyncPolicy(session, sync == "stream" ? NORM_SYNC_STREAM
                                          : sync == "all"  ? NORM_SYNC_ALL
                                                           : NORM_SYNC_CURRENT);
        if (settings.yes("ecn")) NormSetEcnSupport(session, true);
        NormSetRxSocketBuffer(session, 4194304);
        if (!NormStartReceiver(session, static_cast<UINT32>(settings.number("buffer", 16777216))))
            wrong("libnorm does not start a receiver with these settings");
        say("ready");
    }

    int run(double until) {
        const unsigned wanted = static_cast<unsigned>(settings.number("objects", 1));
        double end = until;
        for (;;) {
            NormEvent event;
            if (next_event(instance, end < until ? end : until, event)) {
                on(event);
                if (complete >= wanted && end == until) end = now() + settings.number("linger", 0.5);
            } else {
                const bool done = complete >= wanted;
                say(done ? "done" : "timeout");
                return done ? 0 : 1;
            }
        }
    }

private:
    void on(const NormEvent &event) {
        switch (event.type) {
        case NORM_REMOTE_SENDER_NEW: say("sender", ",\"node\":%u", NormNodeGetId(event.sender)); break;
        case NORM_REMOTE_SENDER_RESET: say("sender-reset", ",\"node\":%u", NormNodeGetId(event.sender)); break;
        case NORM_REMOTE_SENDER_INACTIVE: say("sender-inactive", ",\"node\":%u", NormNodeGetId(event.sender)); break;
        case NORM_RX_CMD_NEW: {
            char buffer[8192];
            unsigned len = sizeof buffer;
            if (NormNodeGetCommand(event.sender, buffer, &len))
                say("command", ",\"text\":%s", quoted(std::string(buffer, len)).c_str());
            break;
        }
        case NORM_RX_OBJECT_NEW:
            ended.erase(event.object);
            say("object", ",\"kind\":\"%s\"", kind_of(event.object));
            break;
        case NORM_RX_OBJECT_INFO:
            say("info", ",\"text\":%s", quoted(info_of(event.object)).c_str());
            if (NormObjectGetType(event.object) == NORM_OBJECT_FILE) {
                // A name and no path: the file stays in the directory.
                std::string name = info_of(event.object);
                name = name.substr(name.rfind('/') + 1);
                if (!name.empty()) NormFileRename(event.object, (settings.text("into", ".") + "/" + name).c_str());
            }
            break;
        case NORM_RX_OBJECT_UPDATED:
            if (NormObjectGetType(event.object) == NORM_OBJECT_STREAM) read_on(event.object);
            break;
        case NORM_RX_OBJECT_COMPLETED: completed(event); break;
        case NORM_RX_OBJECT_ABORTED:
            say("aborted", ",\"kind\":\"%s\"", kind_of(event.object));
            streams.erase(event.object);
            break;
        case NORM_GRTT_UPDATED: say("grtt", ",\"seconds\":%.6f", NormNodeGetGrtt(event.sender)); break;
        default: break;
        }
    }

    static std::string info_of(NormObjectHandle object) {
        char info[8192];
        const UINT16 len = NormObjectGetInfo(object, info, sizeof info);
        return std::string(info, len < sizeof info ? len : sizeof info);
    }

    void read_on(NormObjectHandle stream) {
        Progress &progress = streams[stream];
        char buffer[65536];
        for (;;) {
            unsigned len = sizeof buffer;
            if (!NormStreamRead(stream, buffer, &len)) {
                if (!progress.broken) say("stream-broken");
                progress.broken = true;
                // It goes on with the next message.
                NormStreamSeekMsgStart(stream);
                continue;
            }
            if (len == 0) return;
            progress.size += len;
            progress.hash = hash_of(buffer, len, progress.hash);
        }
    }

    void completed(const NormEvent &event) {
        if (NormObjectGetType(event.object) == NORM_OBJECT_STREAM && !ended.insert(event.object).second) return;
        complete++;
        const unsigned node = NormNodeGetId(event.sender);
        const char *kind = kind_of(event.object);
        Progress found;
        switch (NormObjectGetType(event.object)) {
        case NORM_OBJECT_DATA: {
            found.size = static_cast<uint64_t>(NormObjectGetSize(event.object));
            found.hash = hash_of(NormDataAccessData(event.object), found.size);
            break;
        }
        case NORM_OBJECT_FILE: {
            char path[4096];
            NormFileGetName(event.object, path, sizeof path);
            const std::string bytes = contents(path);
            found.size = bytes.size();
            found.hash = hash_of(bytes.data(), bytes.size());
            break;
        }
        default:
            read_on(event.object);
            found = streams[event.object];
            streams.erase(event.object);
        }
        say("complete", ",\"sender\":%u,\"kind\":\"%s\",\"size\":%llu,\"hash\":\"%016llx\",\"info\":%s", node, kind,
            static_cast<unsigned long long>(found.size), static_cast<unsigned long long>(found.hash),
            quoted(info_of(event.object)).c_str());
    }
};

}  // namespace

int main(int count, char **words) {
    const Settings settings(count, words);
    hashing = settings.text("hash", "yes") != "no";
    NormSetDebugLevel(static_cast<unsigned>(settings.number("debug", 0)));
    const std::string role = settings.text("role", "");
    const NormInstanceHandle instance = NormCreateInstance();
    const NormSessionHandle session =
        NormCreateSession(instance, settings.text("group", "224.1.2.3").c_str(),
                          static_cast<UINT16>(settings.number("port", 6003)),
                          static_cast<NormNodeId>(settings.number("id", 1)));
    if (session == NORM_SESSION_INVALID) wrong("libnorm makes no session of these settings");
    // Several members on one machine share the port.
    NormSetRxPortReuse(session, true);
    NormSetMulticastLoopback(session, true);
    if (settings.has("interface")) NormSetMulticastInterface(session, settings.text("interface", "").c_str());
    NormSetRxLoss(session, settings.number("loss", 0));
    const double until = started + settings.number("seconds", 60);
    int result = 2;
    if (role == "send")
        result = Sender(instance, session, settings).run(until);
    else if (role == "receive")
        result = Receiver(instance, session, settings).run(until);
    else
        wrong("role: expected send or receive");
    // Not taken down: libnorm 1.5.9 frees a buffer twice there, if it has received commands of the application.
    _Exit(result);
}
