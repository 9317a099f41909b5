"""A run whose files are in an object storage: the same bytes as in a folder."""

import hashlib

import pytest

pytest.importorskip("moto")
pytest.importorskip("snakemake_storage_plugin_s3")
boto3 = pytest.importorskip("boto3")

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
BUCKET = "results-of-a-run"


@pytest.fixture
def server(monkeypatch):
    """An S3 server on this machine, with a bucket; returns its address."""
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    address = f"http://{host}:{port}"
    for name, value in {"ENDPOINT_URL": address, "ACCESS_KEY": "x", "SECRET_KEY": "x",
                        "REGION": "us-east-1"}.items():  # fmt: skip
        monkeypatch.setenv(f"SNAKEMAKE_STORAGE_S3_{name}", value)
    yield address
    running.stop()


def test_a_run_in_an_object_storage_has_the_same_bytes(new_project, server):
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
    storage = boto3.client("s3", endpoint_url=server, **keys)
    storage.create_bucket(Bucket=BUCKET)
    here, there = (new_project().configure(methods=["fedavg"]) for _ in range(2))
    table = "results/tables/tiny/default.csv"
    here.make(table)
    where = ("--default-storage-provider", "s3", "--default-storage-prefix", f"s3://{BUCKET}/run")
    there.make(*where, table)
    stored = {
        one["Key"].removeprefix("run/"): one["Key"]
        for one in storage.list_objects_v2(Bucket=BUCKET)["Contents"]
    }
    compared = 0
    for name, content in here.results().items():
        if name in stored:
            body = storage.get_object(Bucket=BUCKET, Key=stored[name])["Body"].read()
            assert hashlib.sha256(body).digest() == hashlib.sha256(content).digest(), name
            compared += 1
    assert table in stored
    assert compared > 10
    assert {name.rpartition("/")[2] for name in there.results()} == {"recipe.yaml"}
