#include "map/view.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cluster/counter_page.h"
#include "plan/picture.h"

namespace ringbolt::tools::map {
namespace {

using Json = nlohmann::ordered_json;
using State = CableFlow::State;

constexpr uint8_t kRed = 31;
constexpr uint8_t kGreen = 32;
constexpr uint8_t kYellow = 33;

bool is_busy(const CableFlow& flow) { return flow.a_to_b_bytes_per_s > 0 || flow.b_to_a_bytes_per_s > 0; }

/// Red: no data can pass. Yellow: some were lost or repeated just now, or of parallel cables one is cut. Green: data
/// pass.
uint8_t colour_of(const CableFlow& flow) {
  return flow.state != State::kActive ? kRed : flow.n_new_errors > 0 ? kYellow : is_busy(flow) ? kGreen : 0;
}

/// Rails are one line with both of their numbers.
std::string picture_of(const View& view, bool has_colours) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> rails;
  fabric::Graph graph{static_cast<uint32_t>(view.model.nodes.size()), {}};
  for (uint32_t index = 0; index < view.model.cables.size(); ++index) {
    const cluster::Cable& cable = view.model.cables[index];
    if (cable.a.node != cable.b.node) {
      rails[std::minmax(cable.a.node, cable.b.node)].push_back(index);
    }
  }
  std::vector<plan::Stroke> strokes;
  for (const auto& [nodes, cables] : rails) {
    fabric::join(graph, nodes.first, nodes.second);
    plan::Stroke& stroke = strokes.emplace_back();
    size_t n_dead = 0;
    for (const uint32_t cable : cables) {
      const uint8_t colour = colour_of(view.flows[cable]);
      n_dead += colour == kRed ? 1U : 0U;
      stroke.pen.colour = std::max(stroke.pen.colour, colour);
      stroke.word += fmt::format("{}{}", stroke.word.empty() ? "" : ",", cable);
    }
    if (n_dead > 0) {
      stroke.pen.colour = n_dead == cables.size() ? kRed : kYellow;
      stroke.pen.is_dashed = n_dead == cables.size();
    }
  }
  std::vector<std::string> names;
  for (const cluster::Node& node : view.model.nodes) {
    names.push_back(node.name);
  }
  return graph.cables.empty() ? "" : plan::picture(graph, names, strokes, has_colours);
}

std::string errors_text(const CableFlow& flow) {
  std::string text;
  for (const auto& [name, count] : flow.errors) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

std::string painted(const std::string& text, uint8_t colour, bool has_colours) {
  return has_colours && colour != 0 ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : text;
}

std::string cable_lines(const View& view, bool has_colours) {
  size_t width = 4;
  for (const cluster::Cable& cable : view.model.cables) {
    width =
        std::max({width, cluster::end_text(view.model, cable.a).size(), cluster::end_text(view.model, cable.b).size()});
  }
  std::string text = fmt::format("CABLE {:<{}}  {:<{}}  STATE   {:>11} {:>11}  CUTS  ERRORS\n", "A", width, "B", width,
                                 "A TO B", "B TO A");
  for (uint32_t index = 0; index < view.model.cables.size(); ++index) {
    const cluster::Cable& cable = view.model.cables[index];
    const CableFlow& flow = view.flows[index];
    text += fmt::format(
        "{:>5} {:<{}}  {:<{}}  {} {:>11} {:>11} {:>5}  {}\n", index, cluster::end_text(view.model, cable.a), width,
        cluster::end_text(view.model, cable.b), width,
        painted(fmt::format("{:<7}", state_text(flow.state)), colour_of(flow), has_colours),
        rate_text(flow.a_to_b_bytes_per_s), rate_text(flow.b_to_a_bytes_per_s), flow.n_cuts,
        flow.errors.empty() ? "0" : painted(errors_text(flow), flow.n_new_errors > 0 ? kYellow : 0, has_colours));
  }
  return text;
}

double total_rate(const View& view) {
  double total = 0;
  for (const CableFlow& flow : view.flows) {
    total += flow.a_to_b_bytes_per_s + flow.b_to_a_bytes_per_s;
  }
  return total;
}

constexpr uint64_t kBytesPerWord = 4;

/// What counts as trouble: losses, repeats and refusals. Each stands for one word of the page, and no word twice.
constexpr std::array<std::pair<const char*, const char*>, 19> kErrors = {{
    {"counters", "port_rcv_errors"},
    {"counters", "port_rcv_constraint_errors"},
    {"counters", "port_xmit_discards"},
    {"hw_counters", "duplicate_request"},
    {"hw_counters", "out_of_sequence"},
    {"hw_counters", "out_of_buffer"},
    {"hw_counters", "send_rnr_err"},
    {"hw_counters", "rcvd_rnr_err"},
    {"hw_counters", "packet_seq_err"},
    {"hw_counters", "implied_nak_seq_err"},
    {"hw_counters", "local_ack_timeout_err"},
    {"hw_counters", "completer_retry_err"},
    {"hw_counters", "retry_exceeded_err"},
    {"hw_counters", "retry_rnr_exceeded_err"},
    {"hw_counters", "req_cqe_error"},
    {"hw_counters", "resp_cqe_error"},
    {"hw_counters", "resp_local_length_error"},
    {"hw_counters", "rx_icrc_encapsulated"},
    {"hw_counters", "rx_drops"},
}};

size_t place_of(const char* folder, const char* name) {
  const auto counters = cluster::all_counters();
  const auto found = std::ranges::find_if(counters, [&](const RingboltCounter& one) {
    return std::strcmp(one.folder, folder) == 0 && std::strcmp(one.name, name) == 0;
  });
  return static_cast<size_t>(found - counters.begin());
}

/// The counters of one port, or nothing but zeros.
class Counts {
 public:
  explicit Counts(const PortCounts* port) : port_(port) {}

  bool is_there() const { return port_ != nullptr; }
  uint64_t of(const char* folder, const char* name) const {
    const size_t place = place_of(folder, name);
    return port_ != nullptr && place < port_->values.size() ? port_->values[place] : 0;
  }
  uint64_t sent() const { return of("counters", "port_xmit_data") * kBytesPerWord; }
  uint64_t received() const { return of("counters", "port_rcv_data") * kBytesPerWord; }

 private:
  const PortCounts* port_;
};

/// The ports of a sample, by node and device.
class Ports {
 public:
  Ports(const cluster::Cluster& model, const Sample& sample) : model_(model) {
    for (const PortCounts& port : sample.ports) {
      by_name_[{port.node, port.device}] = &port;
    }
  }
  Counts at(const cluster::CableEnd& end) const {
    const cluster::Node& node = model_.nodes[end.node];
    const auto found = by_name_.find({node.name, node.ports[end.port].name});
    return Counts(found == by_name_.end() ? nullptr : found->second);
  }

 private:
  const cluster::Cluster& model_;
  std::map<std::pair<std::string_view, std::string_view>, const PortCounts*> by_name_;
};

uint64_t difference(uint64_t before, uint64_t now) { return now > before ? now - before : 0; }

uint64_t errors_of(const Counts& counts) {
  uint64_t sum = 0;
  for (const auto& [folder, name] : kErrors) {
    sum += counts.of(folder, name);
  }
  return sum;
}

void add_errors(const std::vector<Counts>& ends, CableFlow& flow) {
  for (const auto& [folder, name] : kErrors) {
    uint64_t sum = 0;
    for (const Counts& end : ends) {
      sum += end.of(folder, name);
    }
    if (sum > 0) {
      flow.errors.emplace_back(name, sum);
      flow.n_errors += sum;
    }
  }
}

/// By what the sender has sent, or where that is not known, what the receiver has received.
uint64_t moved(const Counts& from, const Counts& to) { return from.is_there() ? from.sent() : to.received(); }

}  // namespace

std::string rate_text(double bytes_per_s) {
  constexpr std::array<const char*, 5> kUnits = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  size_t unit = 0;
  while (bytes_per_s >= 999.5 && unit + 1 < kUnits.size()) {
    bytes_per_s /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || bytes_per_s >= 99.95 ? 0 : bytes_per_s >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", bytes_per_s, decimals, kUnits.at(unit));
}

std::string screen_text(const View& view, bool has_colours) {
  const auto n_active = std::ranges::count(view.flows, State::kActive, &CableFlow::state);
  std::string text = fmt::format("{} ({}): {} nodes, {} cables, {} active; {} over all cables\n\n", view.model.name,
                                 cluster::kind_text(view.model.kind), view.model.nodes.size(), view.flows.size(),
                                 n_active, rate_text(total_rate(view)));
  if (const std::string drawn = picture_of(view, has_colours); !drawn.empty()) {
    text += drawn + "\n";
  }
  text += cable_lines(view, has_colours);
  for (const std::string& problem : view.problems) {
    text += painted(problem, kRed, has_colours) + "\n";
  }
  return text;
}

std::string lines_text(const View& view) { return cable_lines(view, false); }

std::string json_text(const View& view) {
  Json root{{"cluster", view.model.name},    {"kind", cluster::kind_text(view.model.kind)},
            {"interval_s", view.interval_s}, {"nodes", Json::array()},
            {"cables", Json::array()},       {"problems", view.problems}};
  for (const cluster::Node& node : view.model.nodes) {
    root["nodes"].push_back(node.name);
  }
  for (uint32_t index = 0; index < view.model.cables.size(); ++index) {
    const cluster::Cable& cable = view.model.cables[index];
    const CableFlow& flow = view.flows[index];
    Json errors = Json::object();
    for (const auto& [name, count] : flow.errors) {
      errors[name] = count;
    }
    root["cables"].push_back(Json{{"cable", index},
                                  {"a", cluster::end_text(view.model, cable.a)},
                                  {"b", cluster::end_text(view.model, cable.b)},
                                  {"speed_gbps", cable.speed_gbps},
                                  {"state", state_text(flow.state)},
                                  {"a_to_b_bytes_per_s", flow.a_to_b_bytes_per_s},
                                  {"b_to_a_bytes_per_s", flow.b_to_a_bytes_per_s},
                                  {"a_to_b_bytes", flow.a_to_b_bytes},
                                  {"b_to_a_bytes", flow.b_to_a_bytes},
                                  {"cuts", flow.n_cuts},
                                  {"errors", std::move(errors)},
                                  {"new_errors", flow.n_new_errors}});
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string clipped(const std::string& text, size_t columns, size_t rows) {
  std::string kept;
  size_t column = 0;
  size_t row = 0;
  bool has_escapes = false;
  for (size_t at = 0; at < text.size() && row < rows; ++at) {
    const char c = text[at];
    if (c == '\x1b') {
      const size_t end = std::min(text.find('m', at), text.size() - 1);
      kept.append(text, at, end + 1 - at);
      at = end;
      has_escapes = true;
    } else if (c == '\n') {
      kept += has_escapes ? "\x1b[0m\n" : "\n";
      column = 0;
      has_escapes = false;
      ++row;
    } else {
      const bool is_first_byte = (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
      column += is_first_byte ? 1 : 0;
      if (column <= columns) {
        kept += c;
      }
    }
  }
  return kept;
}

const char* state_text(CableFlow::State state) {
  constexpr std::array kTexts{"active", "cut", "down"};
  return kTexts.at(static_cast<size_t>(state));
}

std::vector<CableFlow> flows_between(const cluster::Cluster& model, const Sample& before, const Sample& now) {
  const Ports then(model, before);
  const Ports here(model, now);
  const double seconds = static_cast<double>(difference(before.time_ns, now.time_ns)) / 1e9;
  std::vector<CableFlow> flows;
  for (uint32_t index = 0; index < model.cables.size(); ++index) {
    const cluster::Cable& cable = model.cables[index];
    const Counts a = here.at(cable.a);
    const Counts b = here.at(cable.b);
    const Counts a_then = then.at(cable.a);
    const Counts b_then = then.at(cable.b);
    CableFlow& flow = flows.emplace_back();
    const bool is_up = index < now.is_up.size() && now.is_up[index];
    flow.state = !is_up                           ? CableFlow::State::kCut
                 : !a.is_there() || !b.is_there() ? CableFlow::State::kDown
                                                  : CableFlow::State::kActive;
    flow.a_to_b_bytes = moved(a, b);
    flow.b_to_a_bytes = moved(b, a);
    const bool is_comparable = seconds > 0 && a.is_there() == a_then.is_there() && b.is_there() == b_then.is_there();
    if (is_comparable) {
      flow.a_to_b_bytes_per_s = static_cast<double>(difference(moved(a_then, b_then), flow.a_to_b_bytes)) / seconds;
      flow.b_to_a_bytes_per_s = static_cast<double>(difference(moved(b_then, a_then), flow.b_to_a_bytes)) / seconds;
      flow.n_new_errors = difference(errors_of(a_then) + errors_of(b_then), errors_of(a) + errors_of(b));
    }
    const bool is_plug = cable.a == cable.b;
    add_errors(is_plug ? std::vector{a} : std::vector{a, b}, flow);
    flow.n_cuts = std::max(a.of("counters", "link_downed"), b.of("counters", "link_downed"));
  }
  return flows;
}

}  // namespace ringbolt::tools::map
