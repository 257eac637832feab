//! What processes send each other: frames of bytes, each with the number of a request. Both ends are the same program on one machine, so
//! numbers are in its byte order, and a frame that cannot be read ends the connection.

use std::io::{self, Read, Write};

use ferrogrid_host::NcclError;

use crate::call::Kind;
use crate::element::ElementType;
use crate::reduce_op::{Reduction, Scalar};
use crate::unique_id::BYTES;

/// The first message of a guest.
pub(super) struct Hello {
    pub(super) id: [u8; BYTES],
    pub(super) rank: usize,
    pub(super) size: usize,
}

/// What a guest asks for, in the world of that number.
pub(super) enum Demand {
    Call {
        world: u64,
        number: u64,
        kind: Kind,
        element: ElementType,
        count: usize,
        source: Vec<u8>,
        target: usize,
    },
    Split {
        world: u64,
        color: Option<i32>,
        key: i32,
    },
    Abort {
        world: u64,
    },
    Leave {
        world: u64,
    },
}

/// What a guest gets.
pub(super) enum Answer {
    /// What is to be written.
    Done(Vec<u8>),
    /// The number of the new world, and the place there.
    Part(Option<(u64, usize, usize)>),
    Failed(NcclError),
}

/// The functions that errors name.
const OPERATIONS: [&str; 12] = [
    "all_reduce",
    "reduce",
    "broadcast",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "gather",
    "scatter",
    "send",
    "recv",
    "split",
    "Communicator::new",
];

/// Sends a frame.
pub(super) fn send(stream: &mut impl Write, number: u64, body: &Writer) -> io::Result<()> {
    let mut frame = Vec::with_capacity(body.0.len() + 16);
    frame.extend_from_slice(&(body.0.len() as u64).to_ne_bytes());
    frame.extend_from_slice(&number.to_ne_bytes());
    frame.extend_from_slice(&body.0);
    stream.write_all(&frame)
}

/// Receives a frame.
pub(super) fn receive(stream: &mut impl Read) -> io::Result<(u64, Vec<u8>)> {
    let mut head = [[0; 8]; 2];
    stream.read_exact(head.as_flattened_mut())?;
    let [length, number] = head.map(u64::from_ne_bytes);
    let mut body = Vec::new();
    // Grows with what comes, whatever the length says.
    stream.take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length { Ok((number, body)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The bytes of a message.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

/// The rest of a message.
pub(super) struct Reader<'a>(&'a [u8]);

impl Writer {
    fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_ne_bytes());
        self
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let mut written = self.number(bytes.len() as u64);
        written.0.extend_from_slice(bytes);
        written
    }

    fn kind(self, kind: Kind) -> Self {
        let tag = OPERATIONS.iter().position(|name| *name == kind.name()).unwrap_or_default() as u64;
        let rank = kind.named_rank().map_or(0, |(_, rank)| rank as u64);
        let written = self.number(tag).number(rank);
        match kind.reduction() {
            None => written.number(0).bytes(&[0; 8]),
            Some(Reduction::Sum) => written.number(0).bytes(&[0; 8]),
            Some(Reduction::Product) => written.number(1).bytes(&[0; 8]),
            Some(Reduction::Min) => written.number(2).bytes(&[0; 8]),
            Some(Reduction::Max) => written.number(3).bytes(&[0; 8]),
            Some(Reduction::Average) => written.number(4).bytes(&[0; 8]),
            Some(Reduction::ScaledSum(factor)) => written.number(5).bytes(factor.bytes()),
        }
    }

    fn error(self, error: &NcclError) -> Self {
        let operation = |name: &str| OPERATIONS.iter().position(|known| *known == name).unwrap_or(0) as u64;
        match error {
            NcclError::Mismatch { one, other } => {
                let written = self.number(0).number(one.0 as u64).bytes(one.1.as_bytes());
                written.number(other.0 as u64).bytes(other.1.as_bytes())
            }
            NcclError::PeerLost { operation: name, rank, peer } => {
                self.number(1).number(operation(name)).number(*rank as u64).number(*peer as u64)
            }
            NcclError::TimedOut { operation: name, rank, milliseconds, missing } => {
                let written =
                    self.number(2).number(operation(name)).number(*rank as u64).number(*milliseconds);
                let written = written.number(missing.len() as u64);
                missing.iter().fold(written, |written, rank| written.number(*rank as u64))
            }
            NcclError::RankTaken { rank, size } => self.number(3).number(*rank as u64).number(*size as u64),
            NcclError::Size { rank, size, other } => {
                self.number(4).number(*rank as u64).number(*size as u64).number(*other as u64)
            }
            NcclError::Aborted { rank } => self.number(5).number(*rank as u64),
            // No other error comes of the calls of a world.
            other => self.number(6).bytes(other.to_string().as_bytes()),
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Reader(body)
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*number))
    }

    fn size(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.size()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<Box<str>> {
        Some(String::from_utf8_lossy(self.bytes()?).into())
    }

    fn operation(&mut self) -> Option<&'static str> {
        OPERATIONS.get(self.size()?).copied()
    }

    fn kind(&mut self) -> Option<Kind> {
        let (operation, rank) = (self.operation()?, self.size()?);
        let (reduction, factor) = (self.number()?, Scalar::from_bytes(self.bytes()?.try_into().ok()?));
        let reduction = match reduction {
            0 => Reduction::Sum,
            1 => Reduction::Product,
            2 => Reduction::Min,
            3 => Reduction::Max,
            4 => Reduction::Average,
            5 => Reduction::ScaledSum(factor),
            _ => return None,
        };
        Some(match operation {
            "all_reduce" => Kind::AllReduce(reduction),
            "reduce" => Kind::Reduce(reduction, rank),
            "broadcast" => Kind::Broadcast(rank),
            "all_gather" => Kind::AllGather,
            "reduce_scatter" => Kind::ReduceScatter(reduction),
            "all_to_all" => Kind::AllToAll,
            "gather" => Kind::Gather(rank),
            "scatter" => Kind::Scatter(rank),
            "send" => Kind::Send(rank),
            "recv" => Kind::Recv(rank),
            _ => return None,
        })
    }

    fn error(&mut self) -> Option<NcclError> {
        Some(match self.number()? {
            0 => {
                NcclError::Mismatch { one: (self.size()?, self.text()?), other: (self.size()?, self.text()?) }
            }
            1 => NcclError::PeerLost { operation: self.operation()?, rank: self.size()?, peer: self.size()? },
            2 => {
                let (operation, rank, milliseconds) = (self.operation()?, self.size()?, self.number()?);
                let count = self.size()?;
                let missing = (0..count).map(|_| self.size()).collect::<Option<_>>()?;
                NcclError::TimedOut { operation, rank, milliseconds, missing }
            }
            3 => NcclError::RankTaken { rank: self.size()?, size: self.size()? },
            4 => NcclError::Size { rank: self.size()?, size: self.size()?, other: self.size()? },
            5 => NcclError::Aborted { rank: self.size()? },
            _ => NcclError::Call { function: "rank 0", rank: 0, reason: self.text()? },
        })
    }
}

impl Hello {
    pub(super) fn write(&self) -> Writer {
        Writer::default().bytes(&self.id).number(self.rank as u64).number(self.size as u64)
    }

    pub(super) fn read(mut from: Reader<'_>) -> Option<Self> {
        Some(Hello { id: from.bytes()?.try_into().ok()?, rank: from.size()?, size: from.size()? })
    }
}

impl Demand {
    pub(super) fn write(&self) -> Writer {
        let written = Writer::default();
        match self {
            Demand::Call { world, number, kind, element, count, source, target } => {
                let written = written.number(0).number(*world).number(*number).kind(*kind);
                let written = written.number(*element as u64).number(*count as u64);
                written.bytes(source).number(*target as u64)
            }
            Demand::Split { world, color, key } => {
                let color = color.map_or(u64::MAX, |color| u64::from(color.unsigned_abs()));
                written.number(1).number(*world).number(color).bytes(&key.to_ne_bytes())
            }
            Demand::Abort { world } => written.number(2).number(*world),
            Demand::Leave { world } => written.number(3).number(*world),
        }
    }

    pub(super) fn read(mut from: Reader<'_>) -> Option<Self> {
        let (tag, world) = (from.number()?, from.number()?);
        Some(match tag {
            0 => Demand::Call {
                world,
                number: from.number()?,
                kind: from.kind()?,
                element: ElementType::of_number(from.number()?)?,
                count: from.size()?,
                source: from.bytes()?.to_vec(),
                target: from.size()?,
            },
            1 => {
                let color = i32::try_from(from.number()?).ok();
                Demand::Split { world, color, key: i32::from_ne_bytes(from.bytes()?.try_into().ok()?) }
            }
            2 => Demand::Abort { world },
            3 => Demand::Leave { world },
            _ => return None,
        })
    }
}

impl Answer {
    pub(super) fn write(&self) -> Writer {
        let written = Writer::default();
        match self {
            Answer::Done(bytes) => written.number(0).bytes(bytes),
            Answer::Part(None) => written.number(1),
            Answer::Part(Some((world, rank, size))) => {
                written.number(2).number(*world).number(*rank as u64).number(*size as u64)
            }
            Answer::Failed(error) => written.number(3).error(error),
        }
    }

    pub(super) fn read(mut from: Reader<'_>) -> Option<Self> {
        Some(match from.number()? {
            0 => Answer::Done(from.bytes()?.to_vec()),
            1 => Answer::Part(None),
            2 => Answer::Part(Some((from.number()?, from.size()?, from.size()?))),
            3 => Answer::Failed(from.error()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_arrive_as_they_were_sent() {
        let errors = [
            NcclError::Mismatch { one: (0, "send".into()), other: (3, "recv of 2 u8".into()) },
            NcclError::PeerLost { operation: "gather", rank: 1, peer: 2 },
            NcclError::TimedOut { operation: "split", rank: 4, milliseconds: 70, missing: Box::new([1, 5]) },
            NcclError::RankTaken { rank: 1, size: 2 },
            NcclError::Size { rank: 1, size: 2, other: 3 },
            NcclError::Aborted { rank: 7 },
        ];
        for error in errors {
            let Writer(body) = Answer::Failed(error.clone()).write();
            let Some(Answer::Failed(read)) = Answer::read(Reader::new(&body)) else { panic!("{error}") };
            assert_eq!(read, error);
            for length in 0..body.len() {
                assert!(Answer::read(Reader::new(&body[..length])).is_none(), "{length} bytes of {error}");
            }
        }
    }

    #[test]
    fn a_frame_that_ends_early_is_an_error() {
        let mut sent = Vec::new();
        send(&mut sent, 9, &Writer::default().bytes(b"some bytes")).unwrap();
        assert_eq!(receive(&mut &sent[..]).unwrap().0, 9);
        for length in 0..sent.len() {
            assert!(receive(&mut &sent[..length]).is_err(), "{length} bytes");
        }
    }
}
