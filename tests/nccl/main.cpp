// Loads a net plugin as NCCL does and drives it without a GPU: ranks are processes with a service and a progress thread
// each. Knows nothing of the plugin but the interface.
//
//   nccl_harness PLUGIN.so [--api vN] [--ranks N] [--nodes N --cluster NAME] [--netns-prefix PREFIX] [--case NAME]...
//                [--list] [--channels N] [--cycles N] [--messages N] [--seconds S] [--bytes N] [--pair A,B] [--slow]
//                [--scratch] [--verbose] [--json]
//
// --pair: between whom `stream`, `perf` and `bandwidth` go; the other ranks are there to relay.
// A line for each case; 0: all passed, 1: one failed, 2: wrong usage. --scratch: RINGBOLT_RUNTIME_DIR is a folder that
// is made for each case and goes with it.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "parent.h"

namespace ringbolt::test {
namespace {

struct WrongUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& group :
       {properties_cases(), connect_cases(), data_cases(), poller_cases(), memory_cases(), death_cases(), close_cases(),
        cycle_cases(), abuse_cases(), stream_cases(), cut_cases(), relay_cases()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

int number(std::string_view name, const std::string& text, int least, int most) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < least || value > most) {
    throw WrongUsage(std::string(name) + " takes a number from " + std::to_string(least) + " to " +
                     std::to_string(most) + ", not '" + text + "'");
  }
  return static_cast<int>(value);
}

std::pair<int, int> pair_of(std::string_view name, const std::string& text) {
  const size_t comma = std::min(text.find(','), text.size());
  const std::string second = comma < text.size() ? text.substr(comma + 1) : "";
  const std::pair<int, int> pair = {number(name, text.substr(0, comma), 0, kMostRanks - 1),
                                    number(name, second, 0, kMostRanks - 1)};
  if (pair.first == pair.second) {
    throw WrongUsage(std::string(name) + " takes two ranks, not one");
  }
  return pair;
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) {
        throw WrongUsage(word + " takes a value");
      }
      return words[++i];
    };
    if (word == "--api") {
      const std::string text = value();
      options.api =
          number(word, text.starts_with('v') ? text.substr(1) : text, abi::kOldestVersion, abi::kNewestVersion);
    } else if (word == "--ranks") {
      options.ranks = number(word, value(), 2, kMostRanks);
    } else if (word == "--nodes") {
      options.nodes = number(word, value(), 1, 1024);
    } else if (word == "--cluster") {
      options.cluster = value();
    } else if (word == "--netns-prefix") {
      options.netns_prefix = value();
    } else if (word == "--case") {
      options.cases.push_back(value());
    } else if (word == "--channels") {
      options.channels = number(word, value(), 1, 256);
    } else if (word == "--cycles") {
      options.cycles = number(word, value(), 1, 100'000);
    } else if (word == "--messages") {
      options.messages = number(word, value(), 1, 100'000'000);
    } else if (word == "--bytes") {
      options.bytes = number(word, value(), 4 << 20, 1 << 30);  // longer than all windows on its way
    } else if (word == "--seconds") {
      options.seconds = number(word, value(), 1, 1'000'000);
    } else if (word == "--pair") {
      options.pair = pair_of(word, value());
    } else if (word == "--slow") {
      options.is_slow = true;
    } else if (word == "--scratch") {
      options.makes_scratch = true;
    } else if (word == "--verbose") {
      options.is_verbose = true;
    } else if (word == "--json") {
      options.is_json = true;
    } else if (word == "--list") {
      options.lists_cases = true;
    } else if (word.starts_with("-") || !options.plugin.empty()) {
      throw WrongUsage("'" + word + "' means nothing here");
    } else {
      options.plugin = word;
    }
  }
  if (options.plugin.empty() && !options.lists_cases) {
    throw WrongUsage("which plugin?");
  }
  if (options.pair && std::max(options.pair->first, options.pair->second) >= options.ranks) {
    throw WrongUsage("--pair names a rank that --ranks does not have");
  }
  // dlopen looks for a bare name where libraries are, not here.
  if (!options.plugin.empty() && options.plugin.find('/') == std::string::npos) {
    options.plugin.insert(0, "./");
  }
  return options;
}

std::vector<Case> chosen_cases(const Options& options) {
  std::vector<Case> all = all_cases();
  if (options.cases.empty()) {
    return all;
  }
  std::vector<Case> chosen;
  for (const std::string& name : options.cases) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Case& one) { return one.name == name; });
    if (found == all.end()) {
      throw WrongUsage("no case '" + name + "'; --list names all");
    }
    chosen.push_back(*found);
  }
  return chosen;
}

/// A short path, for sockets may have theirs in it.
class Scratch {
 public:
  explicit Scratch(bool is_wanted) {
    if (is_wanted) {
      std::array<char, 24> path{"/tmp/rbncclXXXXXX"};
      if (mkdtemp(path.data()) == nullptr) {
        throw Failure("no scratch folder in /tmp");
      }
      path_ = path.data();
      setenv("RINGBOLT_RUNTIME_DIR", path.data(), 1);
    }
  }
  ~Scratch() {
    if (!path_.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

 private:
  std::string path_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(c));
      out += code.data();
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    out += (out.size() > 1 ? ", " : "") + quoted(text);
  }
  return out + "]";
}

/// One object a line with --json.
void print(const Case& played, const Outcome& outcome, bool is_json) {
  if (is_json) {
    std::printf("{\"case\": %s, \"ok\": %s, \"failure\": %s, \"notes\": %s, \"rows\": %s, \"seconds\": %.3f}\n",
                quoted(played.name).c_str(), outcome.failure.empty() ? "true" : "false",
                quoted(outcome.failure).c_str(), list_of(outcome.notes).c_str(), list_of(outcome.rows).c_str(),
                outcome.seconds);
  } else {
    std::string details;
    for (const std::string& note : outcome.notes) {
      details += note + "; ";
    }
    if (outcome.failure.empty()) {
      std::printf("ok %s (%s%.2f s)\n", played.name, details.c_str(), outcome.seconds);
    } else {
      std::printf("FAIL %s: %s (%s%.2f s)\n", played.name, outcome.failure.c_str(), details.c_str(), outcome.seconds);
    }
    for (const std::string& row : outcome.rows) {
      std::printf("  %s\n", row.c_str());
    }
  }
  std::fflush(stdout);
}

int run(const Options& options) {
  const std::vector<Case> cases = chosen_cases(options);
  if (options.lists_cases) {
    for (const Case& one : cases) {
      std::printf("%-18s %s\n", one.name, one.asserts);
    }
    return 0;
  }
  if (access(options.plugin.c_str(), R_OK) != 0) {
    throw WrongUsage("no plugin " + options.plugin);
  }
  bool all_passed = true;
  for (const Case& one : cases) {
    const Scratch scratch(options.makes_scratch);
    const Outcome outcome = play(one, options);
    print(one, outcome, options.is_json);
    all_passed = all_passed && outcome.failure.empty();
  }
  return all_passed ? 0 : 1;
}

}  // namespace
}  // namespace ringbolt::test

int main(int count, char** words) {
  try {
    return ringbolt::test::run(ringbolt::test::parse({words + 1, words + count}));
  } catch (const ringbolt::test::WrongUsage& error) {
    std::fprintf(stderr, "nccl_harness: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nccl_harness: %s\n", error.what());
    return 1;
  }
}
