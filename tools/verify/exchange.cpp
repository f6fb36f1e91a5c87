#include "verify/exchange.h"

#include <algorithm>

#include <fmt/format.h>

namespace ringbolt::tools::verify {

std::vector<pair::HelloEntry> entries_of(const Wish& wish) {
  const auto number = [](const auto& value) { return value ? fmt::format("{}", *value) : std::string("any"); };
  return {{"mode", "MODE", mode_text(wish)},
          {"connection", "-c", wish.transport ? pair::text_of(*wish.transport) : "any"},
          {"order", "--order", wish.order ? text_of(*wish.order) : "any that fits"},
          {"least", "--min or -s", number(wish.least_bytes)},
          {"most", "--max or -s", number(wish.most_bytes)},
          {"queue-pairs", "-q", std::to_string(wish.queue_pairs)},
          {"directions", "-b", wish.is_bidirectional ? "both" : "one"},
          {"count", "-n", number(wish.count)},
          {"seconds", "-D or --hours", number(wish.duration_s)},
          {"loss", "--allow-loss", fmt::format("{}", wish.loss_percent)}};
}

std::string emit_facts(const EndFacts& mine) {
  return fmt::format("{}\n{}\n{}", mine.port_rate_gbps, mine.device, mine.library);
}

EndFacts parse_facts(std::string_view text) {
  const size_t first = text.find('\n');
  const size_t second = first == std::string_view::npos ? first : text.find('\n', first + 1);
  if (second == std::string_view::npos) {
    return {"", "?", "?", 0};
  }
  return {"", std::string(text.substr(first + 1, second - first - 1)), std::string(text.substr(second + 1)), 0};
}

std::string emit_outcome(const Outcome& mine) {
  return text_of_numbers({mine.duration_ns, mine.messages, mine.bytes, mine.lost, mine.rounds, mine.slowest_ns}) +
         "\n" + mine.refusal;
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  const size_t line = std::min(text.find('\n'), text.size());
  const auto numbers = numbers_in(text.substr(0, line), 6);
  if (!numbers) {
    return std::nullopt;
  }
  const std::vector<uint64_t>& all = *numbers;
  return Outcome{
      all[0], all[1], all[2], all[3], all[4], all[5], std::string(text.substr(std::min(line + 1, text.size())))};
}

}  // namespace ringbolt::tools::verify
