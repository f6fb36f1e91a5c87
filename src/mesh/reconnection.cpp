#include "mesh/reconnection.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace ringbolt::mesh {

Reconnection::Reconnection(std::shared_ptr<engine::Station> station, uint32_t cable, const engine::CableAddress& peer)
    : cable_(cable) {
  engine::Connecting connecting = station->begin_connecting(cable, peer);
  // The thread holds a share: who destroys this object early leaves queue pairs and station to it.
  work_.reset(new Work{std::move(station), std::move(connecting)});
  try {
    errand_ = std::make_unique<verbs::Errand>(
        [work = work_, name = work_->station->cable(cable).plan().name](verbs::Whereabouts& where) {
          where.set_subject(name);
          work->connecting.run();
        });
  } catch (const std::system_error& error) {
    // There is no thread: the queue pairs go back unconnected, so that another try finds them.
    work_->station->end_connecting(cable, std::move(work_->connecting));
    throw base::Error(error.code().value(), "start a thread", work_->station->cable(cable).plan().name);
  }
}

/// The queue pairs go back first: the cable has them whether connecting has failed or not, which finish() then
/// throws.
void Reconnection::finish() {
  work_->station->end_connecting(cable_, std::move(work_->connecting));
  errand_->finish();
}

}  // namespace ringbolt::mesh
