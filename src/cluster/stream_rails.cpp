#include "cluster/stream_rails.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

namespace ringbolt::cluster {
namespace {

using Streams = std::vector<ThunderboltStream>;

Streams whole_streams(const StreamSide& side) {
  Streams streams;
  for (const ThunderboltPeer& peer : side.peers) {
    std::ranges::copy_if(peer.streams, std::back_inserter(streams), is_whole);
  }
  std::ranges::sort(streams, {}, &ThunderboltStream::index);
  return streams;
}

std::map<std::string, Streams> by_name(const Streams& streams) {
  std::map<std::string, Streams> found;
  for (const ThunderboltStream& stream : streams) {
    found[stream.name].push_back(stream);
  }
  return found;
}

}  // namespace

bool is_whole(const ThunderboltStream& stream) { return stream.in_hopid > 0 && stream.out_hopid > 0; }

bool has_whole_stream(const StreamSide& side) {
  return std::ranges::any_of(side.peers, [](const ThunderboltPeer& peer) {
    return std::ranges::any_of(
        peer.streams, [](const ThunderboltStream& stream) { return stream.name == kStreamName && is_whole(stream); });
  });
}

bool face_each_other(const ThunderboltStream& a, const ThunderboltStream& b) {
  return a.in_hopid == b.out_hopid && a.out_hopid == b.in_hopid;
}

std::vector<StreamRail> match_rails(const StreamPair& pair) {
  const std::map<std::string, Streams> here = by_name(whole_streams(pair.first));
  std::map<std::string, Streams> there = by_name(whole_streams(pair.second));
  std::vector<StreamRail> rails;
  Streams left;
  for (const auto& [name, streams] : here) {
    const auto others = there.find(name);
    // Of one name but different numbers: nobody can say which belong together by name alone.
    if (others == there.end() || others->second.size() != streams.size()) {
      left.insert(left.end(), streams.begin(), streams.end());
      continue;
    }
    std::ranges::transform(streams, others->second, std::back_inserter(rails),
                           [](const auto& a, const auto& b) { return StreamRail(a, b); });
    there.erase(others);
  }
  for (const ThunderboltStream& stream : left) {
    for (const auto& [name, others] : there) {
      // Over several links, ids that match may be of different ones.
      if (pair.first.peers.size() == 1 && face_each_other(stream, others.front())) {
        rails.emplace_back(stream, others.front());
        there.erase(name);
        break;
      }
    }
  }
  std::ranges::sort(rails, {}, [](const StreamRail& rail) { return rail.first.index; });
  rails.resize(std::min(rails.size(), kMaxCableRails));
  return rails;
}

}  // namespace ringbolt::cluster
