#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/say.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "map/flow.h"
#include "map/screen.h"
#include "map/view.h"
#include "port_counts.h"
#include "progress_line.h"

namespace ringbolt::tools {
namespace {

using map::CableFlow;
using map::Sample;
using map::Wish;

Sample take_sample(const LiveCluster& live) {
  Sample sample;
  live.control.refresh();
  for (uint32_t cable = 0; cable < live.model.cables.size(); ++cable) {
    sample.is_up.push_back(live.control.cable_up(cable));
  }
  sample.ports = live.is_remote() ? host_counts(live.model, sample.problems) : cluster_counts(live, sample.problems);
  sample.time_ns = base::now_ns();
  return sample;
}

int answer_of(const std::vector<CableFlow>& flows) {
  for (const CableFlow& flow : flows) {
    if (flow.state != CableFlow::State::kActive) {
      return kFoundProblem;
    }
  }
  return kOk;
}

/// Shows the cluster again and again until a key, a signal, or, if it is to be shown once, the first time.
class Show {
 public:
  Show(const LiveCluster& live, const MapOptions& options)
      : live_(live),
        options_(options),
        interval_ns_(static_cast<uint64_t>(options.interval_s * 1e9)),
        is_terminal_(::isatty(STDOUT_FILENO) != 0),
        is_live_(is_terminal_ && !options.is_once && !options.is_json) {}

  int run() {
    map::Keys keys(is_live_ && ::isatty(STDIN_FILENO) != 0);
    std::optional<map::Screen> screen;
    if (is_live_) {
      screen.emplace();
    }
    Sample before = take_sample(live_);
    std::vector<CableFlow> flows = map::flows_between(live_.model, before, before);
    std::vector<std::string> problems = before.problems;
    for (;;) {
      if (screen) {
        screen->show(map::screen_text({live_.model, flows, problems, options_.interval_s}, has_colours()) +
                     "\nq ends\n");
      }
      std::optional<Waiting> waiting;
      if (options_.is_once) {
        waiting.emplace(fmt::format("counting for {} s", options_.interval_s));
      }
      const Wish wish = keys.wait(
          before.time_ns + interval_ns_, [&] { screen ? screen->leave() : void(); },
          [&] { screen ? screen->enter() : void(); });
      waiting.reset();
      if (wish == Wish::kQuit) {
        const bool is_unshown = options_.is_once && keys.signal() != 0;
        return is_unshown ? 128 + keys.signal() : answer_of(flows);
      }
      if (wish == Wish::kRedraw) {
        continue;
      }
      Sample now = take_sample(live_);
      flows = map::flows_between(live_.model, before, now);
      problems = now.problems;
      before = std::move(now);
      if (!screen && !print(flows, problems)) {
        return answer_of(flows);
      }
    }
  }

 private:
  bool has_colours() const {
    const char* no_color = std::getenv("NO_COLOR");
    return is_terminal_ && (no_color == nullptr || *no_color == '\0');
  }

  /// Whether there is more to print.
  bool print(const std::vector<CableFlow>& flows, const std::vector<std::string>& problems) const {
    const map::View view{live_.model, flows, problems, options_.interval_s};
    fmt::print("{}", options_.is_json   ? map::json_text(view)
                     : options_.is_once ? map::screen_text(view, has_colours())
                                        : map::lines_text(view) + "\n");
    const bool is_read = std::fflush(stdout) == 0;
    if (!options_.is_once && !options_.is_json) {
      for (const std::string& problem : problems) {
        base::say(fmt::format("ringbolt map: {}\n", problem));
      }
    }
    return is_read && !options_.is_once;
  }

  const LiveCluster& live_;
  const MapOptions& options_;
  uint64_t interval_ns_;
  bool is_terminal_;
  bool is_live_;
};

}  // namespace

int map_run(const MapOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  return Show(live, options).run();
}

}  // namespace ringbolt::tools
