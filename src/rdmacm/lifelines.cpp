// What others must know of our connections, so that these end with us, and we with theirs.

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "rdmacm/connection_manager.h"

namespace ringbolt::rdmacm {

uint16_t ConnectionManager::line_port(const cm::Path& path) {
  // Read each time, which is once a connection: no other thread of ours looks at the environment under this lock.
  const char* wanted = std::getenv("RINGBOLT_LIFELINES");
  if (wanted != nullptr && std::string_view(wanted) == "off") {
    return 0;
  }
  return lines_.load()->listen_at(path.local, devices_.at(path.port).facts.netdev_index);
}

void ConnectionManager::note_standings() {
  for (const cm::Standing& standing : engine_->take_standings()) {
    if (!standing.stands) {
      lifelines_->remove(now(), standing.handle);
      ringbolt_management_forget(devices_.at(0).context, standing.handle);
      continue;
    }
    const Device& device = devices_.at(standing.path.port);
    if (standing.peer_slot != cm::kNoSlot || device.facts.is_on_interface == 0) {
      continue;  // of processes on this host, and at the other ends of cables, we hear otherwise
    }
    ringbolt_connection connection{};
    connection.local_id = standing.handle;
    connection.remote_id = standing.remote_id;
    connection.remote_qpn = standing.remote_qpn;
    connection.flow_label = standing.path.flow_label;
    std::memcpy(connection.local_gid, standing.path.local.data(), sizeof connection.local_gid);
    std::memcpy(connection.remote_gid, standing.path.remote.data(), sizeof connection.remote_gid);
    connection.traffic_class = standing.path.traffic_class;
    connection.hop_limit = standing.path.hop_limit;
    // Kept in a file, so that another process of the host can end it in our place.
    ringbolt_management_remember(device.context, &connection);
    lifelines_->add(now(), standing);
  }
}

void ConnectionManager::carry_out(const cm::Lifelines::Order& order) {
  using OrderKind = cm::Lifelines::Order::Kind;
  Lines& lines = *lines_.load();
  switch (order.kind) {
    case OrderKind::expect:
    case OrderKind::call: {
      const Lines::Place place{order.place.local, order.place.remote, devices_.at(order.place.port).facts.netdev_index,
                               order.place.tcp_port};
      if (order.kind == OrderKind::expect) {
        lines.expect(order.token, place);
      } else if (!lines.call(now(), order.token, place)) {
        // No descriptor left, say: tried again later.
        lifelines_->on_broken(now(), order.token);
      }
      return;
    }
    case OrderKind::drop:
      lines.drop(order.token);
      return;
    case OrderKind::forget:
      lines.forget(order.token);
      return;
  }
}

void ConnectionManager::settle_lifelines() {
  note_standings();
  // First: whom we tell our port calls, and must be expected.
  for (const cm::Lifelines::Order& order : lifelines_->take_orders()) {
    carry_out(order);
  }
  send(lifelines_->take_outgoing());
  if (lifelines_->size() == 0 && lifelines_->processes() == 0) {
    lines_.load()->stop_listening();  // a program that has no connections any more has its descriptors back
  }
}

void ConnectionManager::look_at_lines() {
  for (const Lines::News& news : lines_.load()->serve(now())) {
    if (news.kind == Lines::News::Kind::broken) {
      lifelines_->on_broken(now(), news.token);
      continue;
    }
    for (const cm::Handle handle : lifelines_->take_dead(news.token)) {
      engine_->on_peer_lost(now(), handle);
    }
  }
  lifelines_->on_timer(now());
}

}  // namespace ringbolt::rdmacm
