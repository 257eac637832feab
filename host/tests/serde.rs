//! Reports by serde.

use ferrogrid_host::{Device, Limits};
use serde_json::{Value, to_value};

#[test]
fn reports_have_the_names_and_values_of_the_fields() {
    let device = Device::cpu();
    let properties = device.properties().unwrap();
    let report = to_value(&properties).unwrap();
    assert_eq!(report["name"], Value::from(device.name()));
    assert_eq!(report["warp_size"], Value::from(32));
    assert_eq!(report["pci"], Value::Null);
    assert_eq!(to_value(Limits::CUDA).unwrap()["max_block"], serde_json::json!([1024, 1024, 64]));
}
