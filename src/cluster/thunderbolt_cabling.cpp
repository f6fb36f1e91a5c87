#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cluster/cabling.h"
#include "cluster/names.h"
#include "cluster/stream_rails.h"
#include "cluster/thunderbolt.h"

namespace ringbolt::cluster {
namespace {

std::string peer_text(const ThunderboltPeer& peer) {
  return peer.device_name.empty() ? peer.unique_id : fmt::format("\"{}\" ({})", peer.device_name, peer.unique_id);
}

/// Works through all machines; the parts of find_stream_cables() that share what was found. Borrows `hosts`; used
/// once, by one thread. Finds all problems rather than the first: a person then fixes them in one go.
class Cabler {
 public:
  explicit Cabler(const std::vector<HostThunderbolt>& hosts) : hosts_(hosts), is_usable_(hosts.size(), false) {}

  StreamCabling run() {
    std::vector<std::string> names;
    std::ranges::transform(hosts_, std::back_inserter(names), &HostThunderbolt::host);
    result_.cluster.nodes = nodes_of(names);
    result_.cluster.kind = Kind::hosts;
    find_owners();
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      sort_peers(host);
    }
    // A map: cables come in the order of identifiers, so that two runs on the same machines give the same cluster.
    for (const auto& [ids, pair] : pairs_) {
      lay_cable(pair);
    }
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      if (is_usable_[host] && !is_cabled_[host]) {
        result_.problems.push_back(fmt::format("{}: found no Thunderbolt cable from it to another of the hosts; {}",
                                               name(host), seen_text(host)));
      }
    }
    return std::move(result_);
  }

 private:
  const std::string& name(uint32_t host) const { return hosts_[host].host; }
  const ThunderboltLook& look(uint32_t host) const { return hosts_[host].look; }
  std::string place(uint32_t host, const ThunderboltPeer& peer) const {
    return fmt::format("{}/{}", look(host).devices, peer.xdomain);
  }

  std::string seen_text(uint32_t host) const {
    std::string text;
    for (const ThunderboltPeer& peer : look(host).peers) {
      text += fmt::format("{}{} leads to {}", text.empty() ? "" : ", ", peer.xdomain,
                          peer.unique_id.empty() ? "nobody that says who it is" : peer_text(peer));
    }
    return text + "; plug in a cable, name the machine at its end among the hosts, or leave this one out";
  }

  // Hosts that can't have streams keep their identifiers: cables to them are then known, and is_seen_by_both() is
  // quiet.
  void find_owners() {
    is_cabled_.assign(hosts_.size(), false);
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      const std::string reason = why_no_streams(hosts_[host]);
      is_usable_[host] = reason.empty();
      if (!reason.empty()) {
        result_.problems.push_back(reason);
      }
      for (const std::string& id : look(host).own_ids) {
        const auto [owner, is_new] = owners_.try_emplace(id, host);
        if (!is_new && owner->second != host) {
          result_.problems.push_back(fmt::format(
              "{} and {} have routers of one identifier, {}: they are one machine under two names, or can't be told "
              "apart; name each machine once",
              name(owner->second), name(host), id));
        }
      }
    }
  }

  /// Puts what is cabled to this machine to the pair of routers that it joins.
  void sort_peers(uint32_t host) {
    for (const std::string& stray : look(host).strays) {
      note(host, stray,
           "is a stream that no folder in " + look(host).configfs + " names, so that nobody can say where it leads");
    }
    for (const ThunderboltPeer& peer : look(host).peers) {
      const auto owner = owners_.find(peer.unique_id);
      if (peer.unique_id.empty() || peer.own_id.empty()) {
        for (const std::string& group : peer.groups) {
          note(host, fmt::format("{}/{}", look(host).configfs, group),
               fmt::format("is set up, but {} names nobody there: plug in the cable, or rmdir it", place(host, peer)));
        }
      } else if (owner == owners_.end()) {
        note(host, place(host, peer),
             fmt::format("leads to {}, which is none of the hosts: name it among them to use that cable",
                         peer_text(peer)));
      } else if (owner->second == host) {
        note(host, place(host, peer), "leads back to the machine itself");
      } else {
        // One key from both sides. `first` is the host that was named earlier, whichever identifier is smaller.
        StreamPair& pair = pairs_[std::minmax(peer.own_id, peer.unique_id)];
        StreamSide& side = host < owner->second ? pair.first : pair.second;
        side.host = host;
        (host < owner->second ? pair.second : pair.first).host = owner->second;
        side.peers.push_back(peer);
        is_cabled_[host] = true;
      }
    }
  }

  void note(uint32_t host, const std::string& what, const std::string& why) {
    result_.notes.push_back(fmt::format("{}: {} {}; passed over", name(host), what, why));
  }

  /// Both sides see the same number of links between them; or there is a problem, which is said.
  bool is_seen_by_both(const StreamPair& pair) {
    if (!is_usable_[pair.first.host] || !is_usable_[pair.second.host]) {
      return false;  // which has been said
    }
    if (pair.first.peers.size() == pair.second.peers.size()) {
      return true;
    }
    const bool is_first = pair.first.peers.size() > pair.second.peers.size();
    const StreamSide& more = is_first ? pair.first : pair.second;
    const StreamSide& fewer = is_first ? pair.second : pair.first;
    result_.problems.push_back(fmt::format(
        "{}: {} leads to {} {}, but {} shows {} of the {} links to {} in {}; wait some seconds, or pull the cable and "
        "plug it in again",
        name(more.host), place(more.host, more.peers.back()), name(fewer.host), peer_text(more.peers.back()),
        name(fewer.host), fewer.peers.size(), more.peers.size(), name(more.host), look(fewer.host).devices));
    return false;
  }

  void lay_cable(const StreamPair& pair) {
    if (!is_seen_by_both(pair)) {
      return;
    }
    // With rails there may be problems too; the cable is laid all the same, as a caller with problems uses nothing of
    // it.
    const std::vector<StreamRail> rails = match_rails(pair);
    if (rails.empty()) {
      plan_streams(pair);
      return;
    }
    for (const StreamRail& rail : rails) {
      check_ids(pair, rail);
      check_file(pair.first.host, rail.first);
      check_file(pair.second.host, rail.second);
    }
    std::vector<ThunderboltStream> first;
    std::vector<ThunderboltStream> second;
    for (const StreamRail& rail : rails) {
      first.push_back(rail.first);
      second.push_back(rail.second);
    }
    const CableEnd a = plug(pair.first.host, first);
    result_.cluster.cables.push_back({a, plug(pair.second.host, second)});
  }

  CableEnd plug(uint32_t host, const std::vector<ThunderboltStream>& rails) {
    std::string stream;
    for (const ThunderboltStream& rail : rails) {
      stream += (stream.empty() ? "" : "+") + rail.device;
    }
    // Said here, or parse_node() would refuse it later. An empty one has been complained of in check_file().
    if (!stream.empty() && !is_stream_text(stream)) {
      result_.problems.push_back(
          fmt::format("{}: \"{}\" is more than a port can hold; rmdir some of these streams", name(host), stream));
    }
    std::vector<Port>& ports = result_.cluster.nodes[host].ports;
    ports.push_back({fmt::format("rdma_tbstream{}", rails.front().index), "", {}, stream});
    return {host, static_cast<uint32_t>(ports.size() - 1)};
  }

  void check_ids(const StreamPair& pair, const StreamRail& rail) {
    // With several links between the same routers nobody can say which end is whose.
    if (pair.first.peers.size() == 1 && !face_each_other(rail.first, rail.second)) {
      result_.problems.push_back(fmt::format(
          "{}: stream {} of {} has in_hopid {} and out_hopid {}, but at {} it has {} and {}: what goes out here has to "
          "come in there; rmdir one of them and make it again without ids",
          name(pair.first.host), rail.first.name, place(pair.first.host, pair.first.peers.front()), rail.first.in_hopid,
          rail.first.out_hopid, name(pair.second.host), rail.second.in_hopid, rail.second.out_hopid));
    }
  }

  void check_file(uint32_t host, const ThunderboltStream& stream) {
    if (stream.device.empty()) {
      result_.problems.push_back(
          fmt::format("{}: stream {} is set up as number {}, but there is no /dev/tbstream{}; does udev run there?",
                      name(host), stream.name, stream.index, stream.index));
    } else if (!stream.may_open) {
      result_.problems.push_back(
          fmt::format("{0}: {1} may not be opened by the user that ssh logs in as; give its group to that user, as in "
                      "/etc/udev/rules.d/70-tbstream.rules: KERNEL==\"tbstream*\", GROUP=\"plugdev\", MODE=\"0660\"",
                      name(host), stream.device));
    } else if (!stream.holder.empty()) {
      result_.problems.push_back(
          fmt::format("{}: {} is busy: {} has it open, and two readers take bytes away from each other; end it",
                      name(host), stream.device, stream.holder));
    }
  }

  /// What is missing at both ends. The first to get its ids is the one that has some already, else the first host.
  void plan_streams(const StreamPair& pair) {
    // Who has ids announces them; the other end adopts those. If both asked, their ids might not face each other.
    const bool is_second_first = !has_whole_stream(pair.first) && has_whole_stream(pair.second);
    for (const StreamSide* side : {&pair.first, &pair.second}) {
      const StreamSide& other = side == &pair.first ? pair.second : pair.first;
      for (const ThunderboltPeer& peer : side->peers) {
        if (peer.service.empty()) {
          result_.problems.push_back(fmt::format(
              "{}: {} leads to {} {}, which offers no service \"stream\"; modprobe thunderbolt-stream on {}",
              name(side->host), place(side->host, peer), name(other.host), peer_text(peer), name(other.host)));
          continue;
        }
        const auto found = std::ranges::find(peer.streams, kStreamName, &ThunderboltStream::name);
        const bool is_there = found != peer.streams.end();
        // Set up halfway, by an `up` that ended: the same commands finish it.
        if (!is_there || !is_whole(*found)) {
          result_.setups.push_back({side->host, fmt::format("{}/{}", look(side->host).configfs, peer.service),
                                    std::ranges::find(peer.groups, peer.service) == peer.groups.end(), !is_there,
                                    (side == &pair.first) == is_second_first, name(other.host)});
        }
      }
    }
  }

  const std::vector<HostThunderbolt>& hosts_;
  std::vector<bool> is_usable_;
  std::vector<bool> is_cabled_;
  std::map<std::string, uint32_t> owners_;  // of identifiers
  std::map<std::pair<std::string, std::string>, StreamPair> pairs_;
  StreamCabling result_;
};

}  // namespace

StreamCabling find_stream_cables(const std::vector<HostThunderbolt>& hosts) { return Cabler(hosts).run(); }

}  // namespace ringbolt::cluster
