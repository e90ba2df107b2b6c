// What the members on C++ libraries have in common: settings, time, hashes, and events on standard output, a JSON
// object in each line: "t" in seconds since the start, "event", and what belongs to the event. Hashes are FNV-1a of 64
// bits.
//
// Each is a program of one file, which defines `program`, its name, and `usage`: in it each key follows a space and
// precedes "=".
#pragma once

#include <time.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

extern const char *const program;
extern const char *const usage;

[[noreturn]] void wrong(const std::string &what) {
    fprintf(stderr, "%s: %s\n%s", program, what.c_str(), usage);
    exit(2);
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

const double started = now();

const uint64_t NO_HASH = 0xcbf29ce484222325;

uint64_t hash(const char *bytes, size_t len, uint64_t from = NO_HASH) {
    for (size_t i = 0; i < len; i++) from = (from ^ static_cast<uint8_t>(bytes[i])) * 0x100000001b3;
    return from;
}

std::string contents(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) wrong("cannot read " + path);
    std::ostringstream all;
    all << file.rdbuf();
    return all.str();
}

__attribute__((format(printf, 2, 3))) void say(const char *event, const char *format, ...) {
    printf("{\"t\":%.6f,\"event\":\"%s\"", now() - started, event);
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("}\n");
    fflush(stdout);
}

void say(const char *event) { say(event, "%s", ""); }

// The settings: each key with the values that it was given, and all of them in their order.
struct Settings {
    std::map<std::string, std::vector<std::string>> values;
    std::vector<std::pair<std::string, std::string>> ordered;

    Settings(int count, char **words) {
        for (int i = 1; i < count; i++) {
            const std::string word = words[i];
            const size_t at = word.find('=');
            if (at == std::string::npos) wrong("expected KEY=VALUE, not " + word);
            const std::string key = word.substr(0, at), value = word.substr(at + 1);
            if (strstr(usage, (" " + key + "=").c_str()) == nullptr) wrong("no such key: " + key);
            values[key].push_back(value);
            ordered.emplace_back(key, value);
        }
    }

    bool has(const char *key) const { return values.count(key) != 0; }
    std::string text(const char *key, const char *otherwise) const {
        return has(key) ? values.at(key).back() : otherwise;
    }
    bool yes(const char *key, bool otherwise = false) const { return text(key, otherwise ? "yes" : "no") == "yes"; }
    double number(const char *key, double otherwise) const {
        if (!has(key)) return otherwise;
        char *end = nullptr;
        const std::string &text = values.at(key).back();
        const double number = strtod(text.c_str(), &end);
        if (text.empty() || *end != 0 || number < 0) wrong(std::string(key) + ": expected a number, not " + text);
        return number;
    }
};

}  // namespace
