#include "device/ready_list.h"

#include <algorithm>

namespace ringbolt::device {

void ReadyList::make_room() {
  const size_t wanted = places_.size() + 1;
  if (places_.capacity() < wanted) {
    places_.reserve(std::max(wanted, 2 * places_.capacity()));
  }
  if (free_.capacity() < wanted) {
    free_.reserve(std::max(wanted, 2 * free_.capacity()));
  }
}

uint32_t ReadyList::add(QueuePair& qp) {
  ++count_;
  if (free_.empty()) {
    places_.push_back(&qp);
    return static_cast<uint32_t>(places_.size() - 1);
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  places_[place] = &qp;
  return place;
}

void ReadyList::remove(uint32_t place) {
  places_[place] = nullptr;
  free_.push_back(place);
  --count_;
}

void ReadyList::mark_all() {
  for (uint32_t place = 0; place < places_.size(); ++place) {
    mark(place);
  }
}

void ReadyList::use(link::MarkSet& marks) {
  for (uint32_t place = 0; place < places_.size(); ++place) {
    marks.mark(place);
  }
  marks_.store(&marks, std::memory_order_seq_cst);
}

}  // namespace ringbolt::device
