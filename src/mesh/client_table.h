#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "mesh/client.h"

namespace ringbolt::mesh {

/// The clients of a mesh by their channels, and what has come in channels that nobody has attached to so far. Not
/// thread-safe.
class ClientTable {
 public:
  /// Channels of which something is kept. How much that is, those who send it know: they wait for windows. It has been
  /// acknowledged and would never come again.
  static constexpr size_t kMostEarlyChannels = 256;

  /// Gives the client what has come in its channels, in its order. They are nobody else's. Throws std::bad_alloc.
  /// The table keeps a pointer: there is no way to detach, so a client outlives the mesh's thread. Asserts that no
  /// other client has any of the channels. Calls the client before it returns.
  void attach(Client& client, Channels channels);
  void attach(TurnClient& client, Channels channels);

  /// Null if there is none.
  /// Looked for in a row: a mesh has few clients. The pointer is good as long as the client.
  Client* find(uint16_t group) const {
    for (const Attached& one : attached_) {
      if (one.channels.has(group)) {
        return one.client;
      }
    }
    return nullptr;
  }
  /// Whether to keep what comes in a channel without a client: not of measuring cables, and not without end.
  bool may_keep(uint16_t group) const;
  /// If may_keep(). The receipt is settled.
  /// It is not released until a client has attached: it holds memory of the engine so long, for ever where nobody
  /// comes.
  void keep_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt);
  /// `bytes` are copied.
  void keep_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes);

  /// `use` must not attach: it would move what is gone through.
  template <class Use>
  void each(Use use) const {
    for (const Attached& one : attached_) {
      use(*one.client);
    }
  }
  bool is_any_busy() const;
  void end_turn() const {
    for (TurnClient* const client : turn_clients_) {
      client->end_turn();
    }
  }

 private:
  struct Attached {
    Channels channels;
    // not owned
    Client* client;
  };
  struct Early {
    engine::ChunkHeader header;
    engine::Receipt receipt;
    std::vector<std::byte> word;
    bool is_word;
  };

  std::vector<Attached> attached_;
  std::vector<TurnClient*> turn_clients_;
  std::map<uint16_t, std::vector<Early>> early_;  // [channel]
};

}  // namespace ringbolt::mesh
