// The C border, of what a program says before it joins.
#include <string>
#include <string_view>
#include <utility>

#include "bootstrap/config.h"
#include "group/c_border.h"
#include "group/join_options.h"

/// Owned by the program until ringbolt_options_destroy(). One thread at a time.
struct ringbolt_options {
  ringbolt::group::JoinOptions options;
};

namespace {

using ringbolt::c_border::answer;
using ringbolt::c_border::guarded;
using ringbolt::c_border::refuse;
using ringbolt::group::JoinOptions;

/// Makes `say(options)`.
template <class Say>
int with(ringbolt_options* options, Say&& say) {
  if (options == nullptr) {
    return refuse(EINVAL, "the options are NULL");
  }
  return guarded([&] {
    say(options->options);
    return answer({});
  });
}

/// An empty value leaves it to the environment again.
/// Values are judged when the program joins, by whoever reads the variable of that name.
int say(ringbolt_options* options, const char* name, const std::string& value) {
  return with(options, [&](JoinOptions& of) {
    if (value.empty()) {
      of.said.erase(name);
    } else {
      of.said[name] = value;
    }
  });
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

extern "C" {

RINGBOLT_PUBLIC int ringbolt_options_create(ringbolt_options** options) {
  if (options == nullptr) {
    return refuse(EINVAL, "there is no place for the options");
  }
  return guarded([&] {
    *options = new ringbolt_options;
    return answer({});
  });
}

RINGBOLT_PUBLIC void ringbolt_options_destroy(ringbolt_options* options) { delete options; }

RINGBOLT_PUBLIC int ringbolt_options_set_environment(ringbolt_options* options, const char* const* variables) {
  return guarded([&] {
    ringbolt::bootstrap::Environment environment;
    for (const char* const* at = variables; at != nullptr && *at != nullptr; ++at) {
      const std::string_view variable = *at;
      const size_t equals = variable.find('=');
      // All or nothing: the options are as they were.
      if (equals == 0 || equals == std::string_view::npos) {
        return refuse(EINVAL, (std::string(variable) + " is no NAME=VALUE").c_str());
      }
      environment.emplace(variable.substr(0, equals), variable.substr(equals + 1));
    }
    return with(options, [&](JoinOptions& of) {
      of.environment.reset();
      if (variables != nullptr) {
        of.environment = std::move(environment);
      }
    });
  });
}

RINGBOLT_PUBLIC int ringbolt_options_set_rank(ringbolt_options* options, uint32_t rank, uint32_t size) {
  return guarded([&] {
    // A size of 0 leaves both to the environment.
    const int code = say(options, "RINGBOLT_RANK", size == 0 ? "" : std::to_string(rank));
    return code != 0 ? code : say(options, "RINGBOLT_WORLD_SIZE", size == 0 ? "" : std::to_string(size));
  });
}

RINGBOLT_PUBLIC int ringbolt_options_set_meeting(ringbolt_options* options, const char* host, uint16_t port) {
  return guarded([&] {
    std::string name = text_of(host);
    if (name.empty() && port != 0) {
      return refuse(EINVAL, "a port to meet at, and no host");
    }
    if (!name.empty()) {
      const auto parsed = ringbolt::bootstrap::parse_host(name);
      if (!parsed) {
        return refuse(EINVAL, ("the host to meet at, " + name + ", " + parsed.error().problem).c_str());
      }
      name = *parsed;  // an IPv6 address may have come in brackets
    }
    return with(options, [&](JoinOptions& of) {
      of.host = std::move(name);
      of.port = port;
    });
  });
}

RINGBOLT_PUBLIC int ringbolt_options_set_bind_address(ringbolt_options* options, const char* address) {
  return guarded([&] { return say(options, "RINGBOLT_BIND", text_of(address)); });
}

RINGBOLT_PUBLIC int ringbolt_options_set_group(ringbolt_options* options, const char* name) {
  return guarded([&] { return say(options, "RINGBOLT_GROUP", text_of(name)); });
}

RINGBOLT_PUBLIC int ringbolt_options_set_secret(ringbolt_options* options, const char* secret) {
  return guarded([&] { return say(options, "RINGBOLT_SECRET", text_of(secret)); });
}

RINGBOLT_PUBLIC int ringbolt_options_set_join_timeout(ringbolt_options* options, uint64_t timeout_ms) {
  return guarded(
      [&] { return say(options, "RINGBOLT_JOIN_TIMEOUT_MS", timeout_ms == 0 ? "" : std::to_string(timeout_ms)); });
}

RINGBOLT_PUBLIC int ringbolt_options_set_timeout(ringbolt_options* options, uint64_t timeout_ms) {
  return with(options, [&](JoinOptions& of) { of.timeout_ms = timeout_ms; });
}

RINGBOLT_PUBLIC int ringbolt_options_set_verbs(ringbolt_options* options, const char* library) {
  return guarded([&] { return say(options, "RINGBOLT_VERBS", text_of(library)); });
}

RINGBOLT_PUBLIC int ringbolt_options_set_measuring(ringbolt_options* options, int is_measured) {
  return guarded([&] { return say(options, "RINGBOLT_MEASURE", is_measured != 0 ? "on" : "off"); });
}

RINGBOLT_PUBLIC int ringbolt_options_set_checksums(ringbolt_options* options, ringbolt_checksums checksums) {
  return guarded([&] {
    switch (checksums) {
      case RINGBOLT_CHECKSUMS_OFF:
        return say(options, "RINGBOLT_CRC", "off");
      case RINGBOLT_CHECKSUMS_ON:
        return say(options, "RINGBOLT_CRC", "on");
      case RINGBOLT_CHECKSUMS_EVERY:
        return say(options, "RINGBOLT_CRC", "every");
      case RINGBOLT_CHECKSUMS_UNKNOWN:
        break;
    }
    return refuse(EINVAL, "there are three kinds of checksums: off, on and every");
  });
}

RINGBOLT_PUBLIC int ringbolt_options_set_exchange(ringbolt_options* options, ringbolt_exchange exchange,
                                                  void* context) {
  return with(options, [&](JoinOptions& of) { of.exchange = {exchange, context}; });
}

RINGBOLT_PUBLIC int ringbolt_join_with(const ringbolt_options* options, ringbolt_group** group) {
  if (group == nullptr) {
    return refuse(EINVAL, "there is no place for the group");
  }
  return guarded([&] {
    *group = new ringbolt_group{ringbolt::group::Group::join(options == nullptr ? JoinOptions() : options->options)};
    return answer({});
  });
}

RINGBOLT_PUBLIC int ringbolt_join(ringbolt_group** group) {
  return guarded([&] { return ringbolt_join_with(nullptr, group); });
}

}  // extern "C"
