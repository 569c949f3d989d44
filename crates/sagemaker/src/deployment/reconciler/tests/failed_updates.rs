//! What updates leave behind that failed, and so did their rollbacks.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_an_update_leaves_that_failed_both_ways_is_the_same_after_a_restart() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    story.settled("ep").await;
    let batch = json!({ "Type": "CAPACITY_PERCENT", "Value": 50 });
    let policy = json!({ "MaximumBatchSize": batch, "WaitIntervalInSeconds": 60 });
    let update = |config: &str| {
        let deployment = json!({ "RollingUpdatePolicy": policy });
        json!({ "EndpointName": "ep", "EndpointConfigName": config, "DeploymentConfig": deployment })
    };
    story.run("UpdateEndpoint", update("n"));
    sleep(Duration::from_secs(30)).await;
    // The first half has come and is watched. Then nothing comes any more, neither new nor old.
    story.provider.fails.store(true, Ordering::Relaxed);
    while story.described("ep")["EndpointStatus"] != "UpdateRollbackFailed" {
        sleep(Duration::from_secs(1)).await;
    }
    story.provider.fails.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(60)).await;
    let before = story.routed("ep");
    assert_eq!(before.iter().map(|(_, _, weight)| *weight).collect::<Vec<_>>(), [0.5, 0.5]);

    let story = story.again(Duration::ZERO).await;
    story.reconciling.back(Duration::from_secs(60)).await;
    assert_eq!(story.routed("ep"), before);
    let mut images: Vec<_> = story.provider.images.lock().values().cloned().collect();
    images.sort();
    assert_eq!(images, ["m", "m", "n", "n"]);
    assert_eq!(story.described("ep")["EndpointConfigName"], "m");

    // The next update ends it.
    story.run("UpdateEndpoint", update("n"));
    story.settled("ep").await;
    let routed = story.routed("ep");
    assert_eq!(routed.len(), 1, "{routed:?}");
    let endpoint = story.described("ep");
    assert_eq!((&endpoint["EndpointConfigName"], &endpoint["FailureReason"]), (&json!("n"), &Value::Null));
    story.reconciling.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_update_left_serves_on_until_the_next_one_has_brought_something() {
    let story = Story::begin();
    story.run("CreateEndpoint", json!({ "EndpointName": "ep", "EndpointConfigName": "m" }));
    story.settled("ep").await;
    let update = || {
        let policy =
            json!({ "MaximumBatchSize": { "Type": "INSTANCE_COUNT", "Value": 1 }, "WaitIntervalInSeconds": 60 });
        let deployment = json!({ "RollingUpdatePolicy": policy });
        story.run(
            "UpdateEndpoint",
            json!({ "EndpointName": "ep", "EndpointConfigName": "n", "DeploymentConfig": deployment }),
        );
    };
    update();
    sleep(Duration::from_secs(150)).await;
    // Three of four have come; the last one does not, nor do the old ones come back.
    story.provider.fails.store(true, Ordering::Relaxed);
    while story.described("ep")["EndpointStatus"] != "UpdateRollbackFailed" {
        sleep(Duration::from_secs(1)).await;
    }
    let weights = |story: &Story| story.routed("ep").iter().map(|(_, _, weight)| *weight).collect::<Vec<_>>();
    assert_eq!(weights(&story), [0.25, 0.75]);

    // What comes next takes two minutes: until then, the one old instance is not left alone with everything.
    let story = story.again(Duration::from_secs(30)).await;
    assert!(story.reconciling.back(Duration::from_secs(200)).await.is_empty());
    let input = json!({ "EndpointName": "ep", "EndpointConfigName": "n" });
    story.run("UpdateEndpoint", input);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(story.described("ep")["EndpointStatus"], "Updating");
    assert_eq!(weights(&story), [0.25, 0.75, 0.0]);
    story.settled("ep").await;
    assert_eq!(story.routed("ep").iter().map(|(_, revision, _)| *revision).collect::<Vec<_>>(), [3]);
    assert_eq!(story.described("ep")["ProductionVariants"][0]["CurrentInstanceCount"], 4);
    story.reconciling.shutdown().await;
}
