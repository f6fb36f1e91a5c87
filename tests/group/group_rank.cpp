// One rank of a group that does what its standard input says, a command a line, and answers each with a line of JSON:
//
//   join [NAME=VALUE]...    variables besides those of the environment; crc=off for GroupOptions
//   call OPERATION [count=N] [type=T] [reduction=R] [root=K] [peer=K] [times=N] [timeout=MS] [algorithm=A]
//                           times=0: until it fails. Says "running" after the first, "done" or "failed" in the end
//   pairs [count=N] [seconds=S]   every rank sends to every other one: what has come from each, "streamed"
//   split COLOR KEY         the group that comes of it takes the place of this one
//   splits N                N times: splits one off, calls it, and destroys it while what was last sent is under way
//   shrink                  as split, of those that are left
//   outlive SIZE            calls all_reduce and, when that fails, shrinks at once, until a group of that size has
//   called it:
//                           "outlived"
//   rejoin                  likewise, of all ranks
//   abort REASON
//   leave                   destroys the group
//   census                  descriptors, threads and mappings of this process
//   lifetimes N [NAME=VALUE]...   N times: join, an all_reduce, leave
//
// The first line, "here", tells the process's number. Ends with its input.

#include <unistd.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "pairs.h"
#include "ringbolt/group.h"
#include "workload.h"

extern char** environ;

namespace ringbolt::test {
namespace {

using Json = nlohmann::json;
using Options = std::map<std::string, std::string>;

void say(const std::string& event, Json more = Json::object()) {
  more["event"] = event;
  std::cout << more.dump() << std::endl;
}

class Rank {
 public:
  void run() {
    say("here", {{"pid", getpid()}});
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string command;
      words >> command;
      const auto begin = std::chrono::steady_clock::now();
      try {
        obey(command, words);
      } catch (const std::exception& error) {
        const auto taken = std::chrono::steady_clock::now() - begin;
        say("refused", {{"command", command},
                        {"text", error.what()},
                        {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()}});
      }
    }
  }

 private:
  void obey(const std::string& command, std::istringstream& words) {
    if (command == "join") {
      join(options(words));
    } else if (command == "call") {
      call(words);
    } else if (command == "pairs") {
      pairs(options(words));
    } else if (command == "split") {
      int color = 0;
      int key = 0;
      words >> color >> key;
      group_ = group().split(color, key);
      say("split", {{"rank", group().rank()}, {"size", group().size()}});
    } else if (command == "splits") {
      splits(words);
    } else if (command == "shrink") {
      group_ = group().shrink();
      say("shrunk", {{"rank", group().rank()}, {"size", group().size()}});
    } else if (command == "outlive") {
      outlive(words);
    } else if (command == "rejoin") {
      group_ = group().rejoin();
      say("rejoined", {{"rank", group().rank()}, {"size", group().size()}});
    } else if (command == "abort") {
      std::string reason;
      std::getline(words >> std::ws, reason);
      group().abort(reason);
      say("aborted");
    } else if (command == "leave") {
      group_.reset();
      say("left");
    } else if (command == "census") {
      census();
    } else if (command == "lifetimes") {
      lifetimes(words);
    } else {
      throw std::invalid_argument("no command " + command);
    }
  }

  static Options options(std::istringstream& words) {
    Options found;
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        throw std::invalid_argument(word + " is no NAME=VALUE");
      }
      found[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return found;
  }

  static GroupOptions group_options(const Options& wanted) {
    GroupOptions made;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string text = *variable;
      const size_t equals = text.find('=');
      if (equals != std::string::npos) {
        made.environment[text.substr(0, equals)] = text.substr(equals + 1);
      }
    }
    for (const auto& [name, value] : wanted) {
      if (name == "crc") {
        made.has_crc = value != "off";
      } else {
        made.environment[name] = value;
      }
    }
    return made;
  }

  void join(const Options& wanted) {
    group_.reset();
    group_ = Group::join(group_options(wanted));
    say("joined", {{"rank", group().rank()}, {"size", group().size()}});
  }

  Group& group() {
    if (!group_) {
      throw std::logic_error("this process is in no group");
    }
    return *group_;
  }

  void call(std::istringstream& words) {
    Work work;
    words >> work.operation;
    uint64_t times = 1;
    for (const auto& [name, value] : options(words)) {
      if (name == "count") {
        work.count = std::stoull(value);
      } else if (name == "type") {
        work.type = type_of(value);
      } else if (name == "reduction") {
        work.reduction = reduction_of(value);
      } else if (name == "root") {
        work.root = static_cast<uint32_t>(std::stoul(value));
      } else if (name == "peer") {
        work.peer = static_cast<uint32_t>(std::stoul(value));
      } else if (name == "timeout") {
        work.options.timeout_ms = std::stoull(value);
      } else if (name == "algorithm") {
        work.options.algorithm = value;
      } else if (name == "times") {
        times = std::stoull(value);
      } else {
        throw std::invalid_argument("no option " + name);
      }
    }
    repeat(work, times);
  }

  void repeat(const Work& work, uint64_t times) {
    Workload workload(group(), work);
    uint64_t wrong = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t turn = 0; times == 0 || turn < times; ++turn) {
      const auto call_begin = std::chrono::steady_clock::now();
      const Status status = workload.run(static_cast<uint32_t>(turn));
      if (!status.is_ok()) {
        const auto taken = std::chrono::steady_clock::now() - call_begin;
        say("failed", {{"operation", work.operation},
                       {"turn", turn},
                       {"wrong", wrong},
                       {"code", status.code},
                       {"text", status.text},
                       {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()}});
        return;
      }
      wrong += workload.is_exact() ? 0U : 1U;
      if (turn == 0) {
        say("running", {{"operation", work.operation}});
      }
    }
    const auto taken = std::chrono::steady_clock::now() - begin;
    say("done", {{"operation", work.operation},
                 {"wrong", wrong},
                 {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()}});
  }

  void outlive(std::istringstream& words) {
    uint32_t size = 0;
    words >> size;
    uint64_t wrong = 0;
    for (bool is_over = false; !is_over;) {
      Workload workload(group(), {});
      const Status status = workload.run(0);
      wrong += status.is_ok() && !workload.is_exact() ? 1U : 0U;
      is_over = status.is_ok() && group().size() == size;
      if (!status.is_ok()) {
        group_ = group().shrink();
      }
    }
    say("outlived", {{"rank", group().rank()}, {"size", size}, {"wrong", wrong}});
  }

  void pairs(Options wanted) {
    const size_t count = std::stoull(wanted.try_emplace("count", "1000").first->second);
    const double seconds = std::stod(wanted.try_emplace("seconds", "1").first->second);
    Json streams = Json::array();
    for (const Arrivals& one : run_pairs(group(), count, seconds)) {
      streams.push_back({{"messages", one.messages},
                         {"wrong", one.wrong},
                         {"longest_gap_ms", one.longest_gap_ms},
                         {"problem", one.problem}});
    }
    say("streamed", {{"from", streams}});
  }

  void lifetimes(std::istringstream& words) {
    uint64_t times = 0;
    words >> times;
    const Options wanted = options(words);
    for (uint64_t life = 0; life < times; ++life) {
      group_.reset();
      group_ = Group::join(group_options(wanted));
      Workload workload(group(), {});
      const Status status = workload.run(static_cast<uint32_t>(life));
      if (!status.is_ok() || !workload.is_exact()) {
        throw std::runtime_error("life " + std::to_string(life) + ": " + status.text);
      }
    }
    group_.reset();
    say("lived", {{"times", times}});
  }

  void splits(std::istringstream& words) {
    uint32_t times = 0;
    words >> times;
    std::optional<Group> last;  // so that a number has been another one's when it is given again
    for (uint32_t i = 0; i < times; ++i) {
      Group one = group().split(0, 0);
      const uint64_t mine = uint64_t{i} * group().size() + group().rank();
      uint64_t sum = 0;
      const Status status = one.all_reduce(&mine, &sum, 1, Type::uint64, Reduction::sum);
      const uint64_t expected = uint64_t{i} * group().size() * group().size() + group().size() * (group().size() - 1) / 2;
      if (!status.is_ok() || sum != expected) {
        throw std::runtime_error("split " + std::to_string(i) + ": " + std::to_string(sum) + " " + status.text);
      }
      last = std::move(one);
    }
    say("split", {{"times", times}});
  }

  static void census() {
    const auto entries = [](const char* folder) {
      return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
    };
    std::ifstream maps("/proc/self/maps");
    size_t n_maps = 0;
    for (std::string line; std::getline(maps, line);) {
      ++n_maps;
    }
    say("census",
        {{"descriptors", entries("/proc/self/fd")}, {"threads", entries("/proc/self/task")}, {"maps", n_maps}});
  }

  std::optional<Group> group_;
};

}  // namespace
}  // namespace ringbolt::test

int main() {
  ringbolt::test::Rank().run();
  return 0;
}
