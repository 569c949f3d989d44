//! Records of a small name server on loopback, and what becomes of them.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::Name;
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::*;

fn name(text: &str) -> Name {
    Name::from_utf8(text).unwrap()
}

/// Owner, type, time to live in seconds, data.
fn zone() -> Vec<(&'static str, u32, RData)> {
    let v4 = |last| RData::A(A(Ipv4Addr::new(10, 0, 0, last)));
    let v6 = |text: &str| RData::AAAA(AAAA(text.parse().unwrap()));
    let srv = |priority, port, target| RData::SRV(SRV::new(priority, 0, port, name(target)));
    vec![
        ("two.test.", 30, v4(1)),
        ("two.test.", 20, v4(2)),
        ("both.test.", 30, v4(3)),
        ("both.test.", 30, v6("2001:db8::3")),
        ("six.test.", 40, v6("2001:db8::4")),
        ("alias.test.", 9, RData::CNAME(CNAME(name("two.test.")))),
        ("alias.test.", 30, v4(1)),
        ("_vllm._tcp.test.", 50, srv(1, 8001, "two.test.")),
        ("_vllm._tcp.test.", 50, srv(1, 8002, "six.test.")),
        ("_vllm._tcp.test.", 50, srv(1, 8003, "gone.test.")),
        ("_vllm._tcp.test.", 50, srv(2, 9000, "both.test.")),
        ("_half._tcp.test.", 50, srv(1, 8001, "two.test.")),
        ("_half._tcp.test.", 50, srv(1, 8002, "broken.test.")),
    ]
}

/// Answers from the zone; `broken.test.` fails. Counts the questions.
async fn serve(socket: UdpSocket, asked: Arc<AtomicUsize>) {
    let mut buffer = [0; 1_500];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let question = Message::from_vec(&buffer[..length]).unwrap();
        asked.fetch_add(1, Ordering::Relaxed);
        let query = question.queries[0].clone();
        let owner = query.name().to_string().to_ascii_lowercase();
        let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
        let known: Vec<_> = zone().into_iter().filter(|(known, ..)| *known == owner).collect();
        answer.metadata.response_code = match owner.as_str() {
            "broken.test." => ResponseCode::ServFail,
            _ if known.is_empty() => ResponseCode::NXDomain,
            _ => ResponseCode::NoError,
        };
        for (_, seconds, data) in known {
            if matches!(data, RData::CNAME(_)) || data.record_type() == query.query_type() {
                answer.add_answer(Record::from_rdata(query.name().clone(), seconds, data));
            }
        }
        answer.add_query(query);
        socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
    }
}

struct Server {
    asked: Arc<AtomicUsize>,
    resolver: SystemResolver,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn server() -> Server {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let mut connection = ConnectionConfig::udp();
    connection.port = socket.local_addr().unwrap().port();
    let server = NameServerConfig::new(Ipv4Addr::LOCALHOST.into(), true, vec![connection]);
    let config = ResolverConfig::from_name_servers(vec![server]);
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let resolver = SystemResolver { built: Mutex::new(Some(uncached(builder).unwrap())) };
    let asked = Arc::default();
    Server { resolver, task: tokio::spawn(serve(socket, Arc::clone(&asked))), asked }
}

async fn resolve(server: &Server, url: &str) -> Result<(Vec<String>, u64), ResolveError> {
    let answer = server.resolver.resolve(&url.parse().unwrap()).await?;
    let mut addresses: Vec<_> = answer.addresses.iter().map(ToString::to_string).collect();
    addresses.sort();
    Ok((addresses, answer.time_to_live.as_secs()))
}

#[tokio::test]
async fn a_name_stands_for_its_ipv4_addresses_or_else_for_its_ipv6_addresses() {
    let server = server().await;
    for (url, addresses, seconds) in [
        ("http://two.test:8000", vec!["10.0.0.1:8000", "10.0.0.2:8000"], 20),
        ("http://both.test.:81", vec!["10.0.0.3:81"], 30),
        ("http://six.test", vec!["[2001:db8::4]:80"], 40),
        ("http://gone.test", vec![], 0),
    ] {
        let (found, time_to_live) = resolve(&server, url).await.unwrap();
        assert_eq!((found, time_to_live), (addresses.into_iter().map(str::to_owned).collect(), seconds), "{url}");
    }
}

#[tokio::test]
async fn an_alias_counts_with_its_time_to_live() {
    let (found, time_to_live) = resolve(&server().await, "http://alias.test").await.unwrap();
    assert_eq!((found, time_to_live), (vec!["10.0.0.1:80".to_owned()], 9));
}

#[tokio::test]
async fn a_service_stands_for_its_first_targets_at_their_ports() {
    let (found, time_to_live) = resolve(&server().await, "srv+http://_vllm._tcp.test").await.unwrap();
    assert_eq!(found, ["10.0.0.1:8001", "10.0.0.2:8001", "[2001:db8::4]:8002"]);
    assert_eq!(time_to_live, 20, "the shortest of all records that were used");
}

#[tokio::test]
async fn what_cannot_be_looked_up_is_an_error_and_never_half_an_answer() {
    for url in ["http://broken.test", "srv+http://_half._tcp.test"] {
        let server = server().await;
        assert!(resolve(&server, url).await.is_err(), "{url}");
        assert!(server.resolver.built.lock().is_none(), "the next question reads the system's configuration anew");
    }
}

#[tokio::test]
async fn every_question_is_asked_anew() {
    let server = server().await;
    resolve(&server, "http://two.test").await.unwrap();
    let asked = server.asked.load(Ordering::Relaxed);
    resolve(&server, "http://two.test").await.unwrap();
    assert_eq!(server.asked.load(Ordering::Relaxed), 2 * asked);
}
