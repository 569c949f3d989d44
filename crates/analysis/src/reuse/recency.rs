//! The order of last uses with sums over its end: a tree of partial sums (Fenwick 1994).

/// Positions are handed out in ascending order until they are used up.
#[derive(Debug)]
pub(super) struct Recency {
    /// Partial sums; the place 0 is not used.
    sums: Vec<u64>,
    total: u64,
    next: u32,
}

impl Recency {
    pub(super) fn new(positions: usize) -> Recency {
        Recency { sums: vec![0; positions + 1], total: 0, next: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.next as usize + 1 >= self.sums.len()
    }

    pub(super) fn clear(&mut self) {
        self.sums.fill(0);
        (self.total, self.next) = (0, 0);
    }

    /// Puts something last and returns its position. There must be room.
    pub(super) fn push(&mut self, units: u32) -> u32 {
        let position = self.next;
        self.next += 1;
        self.total += u64::from(units);
        self.add(position, u64::from(units));
        position
    }

    /// Takes something out of the order.
    pub(super) fn remove(&mut self, position: u32, units: u32) {
        self.total -= u64::from(units);
        self.add(position, u64::from(units).wrapping_neg());
    }

    /// What stands behind a position.
    pub(super) fn units_since(&self, position: u32) -> u64 {
        let (mut place, mut before) = (position as usize + 1, 0_u64);
        while place > 0 {
            before = before.wrapping_add(self.sums[place]);
            place &= place - 1;
        }
        self.total - before
    }

    fn add(&mut self, position: u32, units: u64) {
        let mut place = position as usize + 1;
        while let Some(sum) = self.sums.get_mut(place) {
            *sum = sum.wrapping_add(units);
            place += place & place.wrapping_neg();
        }
    }
}
