//! A process that is killed at any moment, and started again.

use serde_json::json;

use crate::load::stream;
use crate::place::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_every_endpoint_is_as_it_was_or_goes_on_changing() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::open(folder.path());
    place.model("m");
    place.model("n");
    place.config("old", "m", 2, json!({}));
    place.config("new", "n", 2, json!({}));
    place.create("old").await;
    place.kill().await;

    let place = Place::open(folder.path());
    assert_eq!(place.endpoint()["EndpointStatus"], "InService");
    place.until("its instances are back", || place.routed() == ["v-0", "v-1"]).await;
    let path = "/endpoints/ep/openai/v1/chat/completions";
    stream(place.address(), path, 0).await.unwrap();

    // In the middle of a deployment, at moments that the machine's speed decides.
    let traffic = json!({ "Type": "LINEAR", "WaitIntervalInSeconds": 1,
        "LinearStepSize": { "Type": "CAPACITY_PERCENT", "Value": 50 } });
    let deployment = json!({ "BlueGreenUpdatePolicy": { "TrafficRoutingConfiguration": traffic } });
    place.run(
        "UpdateEndpoint",
        json!({ "EndpointName": "ep", "EndpointConfigName": "new", "DeploymentConfig": deployment }),
    );
    let mut place = place;
    for _ in 0..3 {
        place.kill().await;
        place = Place::open(folder.path());
        place.until("it serves", || !place.routed().is_empty()).await;
    }
    place.in_service().await;
    let endpoint = place.endpoint();
    assert_eq!(endpoint["EndpointConfigName"], "new");
    assert_eq!(endpoint["ProductionVariants"][0]["CurrentInstanceCount"], 2);
    stream(place.address(), path, 0).await.unwrap();

    place.run("DeleteEndpoint", json!({ "EndpointName": "ep" }));
    place.kill().await;
    let place = Place::open(folder.path());
    place
        .until("it is gone", || place.run("ListEndpoints", json!({}))["Endpoints"].as_array().unwrap().is_empty())
        .await;
    assert!(place.routed().is_empty());
    place.close().await;
}
