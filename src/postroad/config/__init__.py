"""The node's settings: declared once each, read from four places, shown with where they come from.

    defaults  ←  TOML file  ←  environment (POSTROAD_SECTION_NAME)  ←  command line

`settings` holds the declarations, one class for each section; everything else derives from them: how a
value is read (`values`), where from (`sources`), and how it is printed as TOML, as documentation and
for Kafka's DescribeConfigs (`printing`). Start reading at `settings`.

    loaded = load(file=path, flags={"kafka.port": "9093"})
    loaded.settings.kafka.port
    Settings.of(kafka_port=0, data_dir=tmp_path)            # in tests
"""

from postroad.config.printing import describe, reference, to_toml
from postroad.config.settings import Settings
from postroad.config.sources import Loaded, load

__all__ = ["Loaded", "Settings", "describe", "load", "reference", "to_toml"]
