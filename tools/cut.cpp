#include <fmt/format.h>

#include "cable_choice.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "namespaces.h"
#include "port_counts.h"
#include "programs.h"
#include "sysroot.h"

namespace ringbolt::tools {
namespace {

void print_told(const LiveCluster& live, uint32_t index, bool is_up, size_t told) {
  fmt::print("cable {} ({}) is {}; {} running program{} told\n", index, cable_text(live, index),
             is_up ? "healed" : "cut", told, told == 1 ? "" : "s");
}

int set_cable(const CableOptions& options, bool is_up) {
  LiveCluster live = open_cluster(options.cluster);
  const uint32_t index = find_cable(live, options.cable);
  if (live.is_remote()) {
    const size_t told = set_host_cable(live.model, index, is_up);
    const base::UniqueFd lock = lock_clusters(live.dir);
    live.control.set_cable(index, is_up);
    print_told(live, index, is_up, told);
    return kOk;
  }
  // One writer of the control page at a time, or two changes could count as one.
  const base::UniqueFd lock = lock_clusters(live.dir);
  // The control page says "cut" for as long as the interfaces may be down.
  if (is_up && live.model.kind == cluster::Kind::netns) {
    set_cable_link(live.model, index, true);
  }
  const bool changed = live.control.set_cable(index, is_up);
  if (!is_up && live.model.kind == cluster::Kind::netns) {
    set_cable_link(live.model, index, false);
  }
  if (changed && !is_up) {
    count_cut(live, index);
  }
  for (const cluster::CableEnd& end : {live.model.cables[index].a, live.model.cables[index].b}) {
    set_sysroot_state(sysroot_of(live, end.node), live.model.nodes[end.node].ports[end.port].name, is_up);
  }
  // Also when nothing changed: an earlier command may have ended between its write and its word to the programs.
  const size_t told = poke_cluster(live.dir, live.model.name);
  if (!changed) {
    fmt::print("cable {} ({}) was {} already\n", index, cable_text(live, index), is_up ? "up" : "cut");
    return kOk;
  }
  print_told(live, index, is_up, told);
  return kOk;
}

}  // namespace

int cut(const CableOptions& options) { return set_cable(options, false); }
int heal(const CableOptions& options) { return set_cable(options, true); }

}  // namespace ringbolt::tools
