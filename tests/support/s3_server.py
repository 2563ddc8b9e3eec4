"""An S3 of this machine (moto), for what is kept in a bucket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import boto3
import s3fs
from moto.server import ThreadedMotoServer

BUCKET = "bucket"
#: What a pod's or a worker's environment would hold; the names are those of every AWS client.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "of a test",
    "AWS_SECRET_ACCESS_KEY": "of no use elsewhere",
    "AWS_DEFAULT_REGION": "eu-central-1",
}


@dataclass(frozen=True)
class S3Server:
    """A running server; clients find it by :attr:`environment`."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.url}

    def keys(self) -> list[str]:
        """What lies in the bucket, as another client sees it."""
        found = self._client().list_objects_v2(Bucket=BUCKET)
        return [each["Key"] for each in found.get("Contents", [])]

    def fresh_bucket(self) -> None:
        """An empty bucket, and no client that remembers the one before it."""
        client = self._client()
        with contextlib.suppress(client.exceptions.NoSuchBucket):
            for key in self.keys():
                client.delete_object(Bucket=BUCKET, Key=key)
            client.delete_bucket(Bucket=BUCKET)
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
        s3fs.S3FileSystem.clear_instance_cache()

    def _client(self):
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run an S3 on a free port of 127.0.0.1."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
