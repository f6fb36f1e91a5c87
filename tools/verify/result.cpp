#include "verify/result.h"

#include <algorithm>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::verify {
namespace {

void add_row(std::vector<Row>& rows, const Row& one) {
  auto found = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& row) { return row.title == one.title && row.by == one.by; });
  if (found == rows.end()) {
    found = rows.insert(rows.end(), Row{one.title, one.by});
  }
  ++found->steps;
  found->messages += one.messages;
  found->verified_bytes += one.verified_bytes;
  found->lost += one.lost;
  found->duration_ns += one.duration_ns;
  found->rounds += one.rounds;
  found->slowest_round_ns = std::max(found->slowest_round_ns, one.slowest_round_ns);
}

}  // namespace

double Row::goodput_gbps() const {
  return duration_ns == 0 ? 0 : static_cast<double>(verified_bytes) * 8.0 / static_cast<double>(duration_ns);
}

void Result::add(const Step& step, const Outcome& client, const Outcome& server) {
  const auto row = [&](const char* by, uint64_t duration_ns) {
    Row one{title_of(step), by};
    one.duration_ns = duration_ns;
    return one;
  };
  if (step.mode == Mode::kStream && step.is_bidirectional) {
    for (const bool is_client : {true, false}) {
      const Outcome& sender = is_client ? client : server;
      const Outcome& receiver = is_client ? server : client;
      Row one = row(is_client ? "client" : "server", sender.duration_ns);
      one.messages = receiver.messages;
      one.verified_bytes = receiver.bytes;
      one.lost = receiver.lost;
      add_row(rows, one);
    }
    return;
  }
  const bool is_both = step.mode == Mode::kChurn;
  Row one = row(is_both            ? "both"
                : step.is_reversed ? "server"
                                   : "client",
                std::max(client.duration_ns, server.duration_ns));
  one.messages = client.messages + server.messages;
  one.verified_bytes = client.bytes + server.bytes;
  one.lost = client.lost + server.lost;
  one.rounds = std::max(client.rounds, server.rounds);
  one.slowest_round_ns = std::max(client.slowest_ns, server.slowest_ns);
  add_row(rows, one);
}

std::vector<std::string> invalid_figures(const Result& result) {
  std::vector<std::string> invalid;
  for (const Row& row : result.rows) {
    if (result.line_rate_gbps > 0 && row.by != "both" && row.goodput_gbps() > result.line_rate_gbps) {
      invalid.push_back(
          fmt::format("{} by the {}: goodput of {:.4g} Gb/s is above the line rate of {:.4g} Gb/s, so the data "
                      "did not go over that line; if the line is another, give --line-rate GBPS (0: none)",
                      row.title, row.by, row.goodput_gbps(), result.line_rate_gbps));
    }
  }
  return invalid;
}

int exit_code_of(const Result& result) {
  if (!result.refusal.empty()) {
    return kWrongUsage;
  }
  return result.tally.total() == 0 && invalid_figures(result).empty() ? kOk : kFoundProblem;
}

}  // namespace ringbolt::tools::verify
