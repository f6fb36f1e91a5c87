#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/say.h"
#include "cluster/cluster_file.h"
#include "commands.h"
#include "failure.h"
#include "page_file.h"
#include "plan/picture.h"
#include "plan/report.h"
#include "progress_line.h"

namespace ringbolt::tools {

int plan_run(const PlanOptions& options) {
  const int n_for_stdout = (options.is_json ? 1 : 0) + (options.is_dot ? 1 : 0) + (options.svg_path == "-" ? 1 : 0) +
                           (options.cluster_path == "-" ? 1 : 0);
  if (n_for_stdout > 1) {
    throw UsageError(
        "--json, --dot, --svg - and --cluster-file - all want stdout: choose one, and give paths to the others");
  }
  std::optional<Waiting> waiting(std::in_place, "working it out");
  const plan::Cabling cabling = plan::wanted_cabling(options);
  const plan::Analysis analysis = plan::analyse(cabling, options);
  waiting.reset();
  PageFile svg_file(options.svg_path, "--svg");
  PageFile cluster_file(options.cluster_path, "--cluster-file");
  svg_file.write(plan::svg_text(cabling));
  cluster_file.write(cluster::emit_cluster(cabling.model));
  if (options.is_json) {
    plan::print_json(cabling, analysis, options);
  } else if (options.is_dot) {
    fmt::print("{}", plan::dot_text(cabling));
  } else if (n_for_stdout == 0) {
    plan::print_text(cabling, analysis, options);
  }
  std::fflush(stdout);
  for (const std::string& problem : analysis.problems) {
    base::say(fmt::format("ringbolt plan: {}\n", problem));
  }
  return analysis.problems.empty() ? kOk : kFoundProblem;
}

}  // namespace ringbolt::tools
