//! The queue of free blocks, oldest first: a doubly linked list over block numbers.

/// Free blocks in the order in which they were freed. All operations take constant time and allocate nothing, because
/// every block has its links reserved.
#[derive(Debug)]
pub(crate) struct FreeQueue {
    /// Links of each block; the last entry is the ring's anchor: its `next` is the front, its `previous` the back.
    links: Vec<Link>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

impl FreeQueue {
    /// All blocks `0..capacity`, in this order.
    pub(crate) fn full(capacity: u32) -> Self {
        let last = capacity;
        let links = (0..=capacity)
            .map(|block| Link {
                previous: if block == 0 { last } else { block - 1 },
                next: if block == last { 0 } else { block + 1 },
            })
            .collect();
        Self { links, len: capacity as usize }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes the block that has been free the longest.
    pub(crate) fn pop_front(&mut self) -> Option<u32> {
        let front = self.links[self.anchor() as usize].next;
        if front == self.anchor() {
            return None;
        }
        self.remove(front);
        Some(front)
    }

    /// Appends a block. It must not be in the queue.
    pub(crate) fn push_back(&mut self, block: u32) {
        let anchor = self.anchor();
        let back = self.links[anchor as usize].previous;
        self.links[block as usize] = Link { previous: back, next: anchor };
        self.links[back as usize].next = block;
        self.links[anchor as usize].previous = block;
        self.len += 1;
    }

    /// Takes a block out, wherever it stands. It must be in the queue.
    pub(crate) fn remove(&mut self, block: u32) {
        let Link { previous, next } = self.links[block as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        self.len -= 1;
    }

    fn anchor(&self) -> u32 {
        (self.links.len() - 1) as u32
    }
}

#[cfg(test)]
impl FreeQueue {
    /// The blocks, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let next = |block: u32| Some(self.links[block as usize].next).filter(|&next| next != self.anchor());
        std::iter::successors(next(self.anchor()), move |&block| next(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_in_the_order_in_which_they_came() {
        let mut queue = FreeQueue::full(3);
        assert_eq!(queue.pop_front(), Some(0));
        queue.push_back(0);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(
            [queue.pop_front(), queue.pop_front(), queue.pop_front(), queue.pop_front()],
            [Some(1), Some(2), Some(0), None]
        );
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_block_leaves_from_front_middle_and_back() {
        let mut queue = FreeQueue::full(5);
        for block in [0, 2, 4] {
            queue.remove(block);
        }
        assert_eq!(queue.iter().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(queue.len(), 2);
        queue.push_back(4);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [1, 3, 4]);
    }

    #[test]
    fn an_empty_queue_can_be_filled() {
        let mut queue = FreeQueue::full(0);
        assert_eq!(queue.pop_front(), None);
        let mut queue_of_one = FreeQueue::full(1);
        queue_of_one.remove(0);
        queue_of_one.push_back(0);
        assert_eq!(queue_of_one.pop_front(), Some(0));
        assert_eq!(queue.pop_front(), None);
    }
}
