//! The driver in made-up time: lateness does not add up, arrivals and departures count at their true times.

use isotherm_engine_model::{CacheScope, EngineRequest, Profile};

use super::*;

fn driver(speed: f64) -> (Driver, Instant, Arc<LagRecorder>) {
    let (start, lag) = (Instant::now(), Arc::new(LagRecorder::new()));
    (Driver::new(Profile::default(), speed, start, Arc::clone(&lag)), start, lag)
}

fn submit(driver: &mut Driver, at: Instant, prompt: u32, output: u32) -> Ticket {
    let (prompt, output): (Vec<_>, Vec<_>) = ((0..prompt).collect(), (0..output).collect());
    let request = |id| EngineRequest::from_tokens(id, &CacheScope::default(), &prompt, &output);
    driver.submit(at, Finish::Length, request).unwrap()
}

/// Wakes `late` after each deadline until the request is finished; gives the time of the last wake-up.
fn finish(driver: &mut Driver, progress: &Progress, late: Duration) -> Instant {
    loop {
        let wall = driver.deadline().expect("the request is not finished") + late;
        driver.advance(wall);
        if progress.is_finished() {
            return wall;
        }
    }
}

#[test]
fn lateness_does_not_add_up_over_steps() {
    let late = Duration::from_millis(7);
    let (mut punctual, start, _) = driver(1.0);
    let (_, progress) = submit(&mut punctual, start, 100, 200);
    let expected = finish(&mut punctual, &progress, Duration::ZERO) - start;
    let (mut tardy, start, lag) = driver(1.0);
    let (_, progress) = submit(&mut tardy, start, 100, 200);
    let took = finish(&mut tardy, &progress, late) - start;
    assert!(took <= expected + late, "{took:?}, punctual {expected:?}");
    assert_eq!(progress.tokens(), 200);
    assert!(lag.report().max >= late && lag.report().max < late + Duration::from_millis(1), "{:?}", lag.report());
}

#[test]
fn a_request_arrives_at_its_true_time_however_late_the_steps_before_it_are_noticed() {
    let finish_second = |advance_first: bool| {
        let (mut driver, start, _) = driver(1.0);
        submit(&mut driver, start, 2_000, 10);
        if advance_first {
            for millis in 0..300 {
                driver.advance(start + Duration::from_millis(millis));
            }
        }
        let (_, second) = submit(&mut driver, start + Duration::from_millis(300), 500, 10);
        finish(&mut driver, &second, Duration::ZERO) - start
    };
    assert_eq!(finish_second(true), finish_second(false));
}

#[test]
fn tokens_are_handed_out_only_after_the_overhead() {
    let (mut driver, start, _) = driver(1.0);
    let (_, progress) = submit(&mut driver, start, 100, 1);
    driver.advance(driver.deadline().unwrap());
    let due = driver.deadline().unwrap();
    let step_end = start + driver.step_end.unwrap();
    assert!(due >= step_end + driver.overhead_after);
    driver.advance(step_end);
    assert_eq!((driver.statistics().finished, progress.tokens()), (1, 0));
    driver.advance(due);
    assert!(progress.is_finished());
}

#[test]
fn an_aborted_request_takes_part_in_no_further_step() {
    let (mut driver, start, _) = driver(1.0);
    let (id, progress) = submit(&mut driver, start, 100, 1_000);
    while progress.tokens() < 3 {
        driver.advance(driver.deadline().unwrap());
    }
    let left = driver.deadline().unwrap();
    driver.abort(left, id);
    let generated = driver.statistics().generation_tokens;
    driver.advance(left + Duration::from_secs(60));
    assert!(driver.statistics().generation_tokens <= generated + 1);
    assert_eq!((driver.statistics().used_blocks, driver.deadline()), (0, None));
}

#[test]
fn speed_and_slow_down_scale_the_wall_time() {
    let took = |speed, factor| {
        let (mut driver, start, _) = driver(speed);
        driver.slow_down(start, factor);
        let (_, progress) = submit(&mut driver, start, 100, 50);
        (finish(&mut driver, &progress, Duration::ZERO) - start).as_secs_f64()
    };
    let real = took(1.0, 1.0);
    assert!((took(10.0, 1.0) * 10.0 / real - 1.0).abs() < 1e-3);
    assert!((took(10.0, 20.0) / 2.0 / real - 1.0).abs() < 1e-3);
}
