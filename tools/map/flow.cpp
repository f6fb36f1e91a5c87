#include "map/flow.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include "cluster/counter_page.h"

namespace ringbolt::tools::map {
namespace {

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
