#include "mesh/client_table.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::mesh {

void ClientTable::attach(Client& client, Channels channels) {
  RINGBOLT_ASSERT(std::none_of(attached_.begin(), attached_.end(), [&](const Attached& one) {
    return one.channels.first <= channels.last && channels.first <= one.channels.last;
  }));
  attached_.push_back({channels, &client});
  auto early = early_.lower_bound(channels.first);
  // Nothing is added to what is gone through here: these channels have a client already, so nothing of theirs is
  // kept.
  while (early != early_.end() && early->first <= channels.last) {
    for (const Early& one : early->second) {
      if (one.is_word) {
        client.on_word(one.header, one.word);
      } else {
        client.on_chunk(one.header, one.receipt);
      }
    }
    early = early_.erase(early);
  }
}

void ClientTable::attach(TurnClient& client, Channels channels) {
  // First: what has come early may have it want the end of this turn already.
  turn_clients_.push_back(&client);
  attach(static_cast<Client&>(client), channels);
}

bool ClientTable::may_keep(uint16_t group) const {
  const uint16_t channel = group & kChannelBits;
  return channel != kMeasuringChannel && (early_.count(channel) > 0 || early_.size() < kMostEarlyChannels);
}

void ClientTable::keep_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) {
  early_[header.group & kChannelBits].push_back({header, receipt, {}, false});
}

void ClientTable::keep_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) {
  early_[header.group & kChannelBits].push_back({header, {}, {bytes.begin(), bytes.end()}, true});
}

bool ClientTable::is_any_busy() const {
  return std::any_of(attached_.begin(), attached_.end(), [](const Attached& one) { return one.client->is_busy(); });
}

}  // namespace ringbolt::mesh
