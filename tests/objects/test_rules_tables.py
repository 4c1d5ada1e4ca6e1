"""What the rules say and what they must not say, in tables; each silence beside what breaks it."""

from __future__ import annotations

import pytest

from remem.objects.derive import rules
from remem.objects.derive.claim import Claim
from remem.objects.model import Observation, Scope

SAID = 1_700_000_000_000_000  # 2023-11-14, microseconds UTC
SCOPE = Scope("t", "p", "c", "a", "s")


def derive(text: str) -> list[Claim]:
    said = Observation(
        bytes(16), SCOPE, None, text, "user", "", "owner", None, SAID, None, None, "turn", {}
    )
    return rules.derive(said)


def shown(claims: list[Claim]) -> str:
    """Write claims in one line: "lives_in Berlin; ended: works_at Acme"."""
    return "; ".join(
        ("ended: " if c.ends else "past: " if c.valid_to is not None else "")
        + ("" if c.subject == "user" else f"{c.subject} ")
        + f"{c.predicate} {c.object}"
        for c in claims
    )


# What is said, and the claims (see `shown`) that are right.
SAYS = {
    "I live in Berlin.": "lives_in Berlin",
    "i live in berlin": "lives_in berlin",
    "Yeah, I'm living in Austin, Texas at the moment.": "lives_in Austin, Texas",
    "We live in a small town near Boston.": "lives_in a small town near Boston",
    "I've lived in the Netherlands for 10 years.": "lives_in Netherlands",
    "I\u2019m based in S\u00e3o Paulo.": "lives_in S\u00e3o Paulo",
    "I live in St. Louis.": "lives_in St. Louis",
    "I moved to Lisbon last year.": "lives_in Lisbon",
    "I just moved from Sweden to Berlin.": "lives_in Berlin",
    "We moved back to London with the kids.": "lives_in London",
    "Anna has moved from Leeds to York.": "Anna lives_in York",
    "My sister lives in Rome.": "user's sister lives_in Rome",
    "My sister Anna lives in Rome.": "has_sister Anna; Anna lives_in Rome",
    "Anna Kowalska lives in Gda\u0144sk.": "Anna Kowalska lives_in Gda\u0144sk",
    "Mom lives in Leeds.": "user's mom lives_in Leeds",
    "I no longer live in Rome.": "ended: lives_in Rome",
    "I don't live in Rome anymore.": "ended: lives_in Rome",
    "Anna no longer lives in Rome.": "ended: Anna lives_in Rome",
    "I used to live in Rome.": "past: lives_in Rome",
    "I used to live in Rome, now I live in Berlin.": "past: lives_in Rome; lives_in Berlin",
    "I lived in Rome from 2010 to 2015.": "past: lives_in Rome",
    "I lived in Rome until 2015.": "past: lives_in Rome",
    "I work at Acme Corp.": "works_at Acme Corp",
    "I work for the Bank of America as a teller.": "works_at Bank of America",
    "I work at McDonald's.": "works_at McDonald's",
    "I've been working at Siemens since 2018.": "works_at Siemens",
    "I work at a hospital in Leeds.": "works_at a hospital in Leeds",
    "I work as a nurse at St Mary's Hospital.": "works_as nurse; works_at St Mary's Hospital",
    "I'm a software engineer at Google.": "is_a software engineer; works_at Google",
    "I'm a student at MIT.": "is_a student; studies_at MIT",
    "My sister is a nurse.": "user's sister is_a nurse",
    "I don't work at Acme any more.": "ended: works_at Acme",
    "I quit my job at Acme.": "ended: works_at Acme",
    "I lost my job last month.": "ended: works_at ",
    "I got a new job at Initech!": "works_at Initech",
    "My name is Anna.": "name Anna",
    "my name is anna": "name anna",
    "I'm called Bob.": "name Bob",
    "Call me Al.": "name Al",
    "My birthday is on March 3rd.": "birthday March 3rd",
    "Anna's birthday is May 5.": "Anna birthday May 5",
    "My sister's birthday is 2 June.": "user's sister birthday 2 June",
    "I was born on 5 May 1980 in Paris.": "birthday 5 May 1980; born_in Paris",
    "I was born in 1984.": "birth_year 1984",
    "I was born and raised in Oslo.": "born_in Oslo",
    "I grew up in Ohio.": "grew_up_in Ohio",
    "I'm from Sweden.": "is_from Sweden",
    "I'm originally from Brazil.": "is_from Brazil",
    "I speak German and a little French.": "speaks German; speaks French",
    "I'm fluent in Japanese.": "speaks Japanese",
    "I have a dog called Rex.": "has_pet Rex",
    "We have two cats named Luna and Oliver.": "has_pet Luna; has_pet Oliver",
    "My dog's name is Rex.": "has_pet Rex",
    "My cat Milo sleeps all day.": "has_pet Milo",
    "We have three kids.": "has three kids",
    "I own a red bike.": "owns red bike",
    "I'm married to Sofia.": "married_to Sofia",
    "My wife's name is Sofia.": "married_to Sofia",
    "My wife Sofia works at Siemens.": "married_to Sofia; Sofia works_at Siemens",
    "I have a brother called Tom.": "has_brother Tom",
    "My older brother is called Tom.": "has_brother Tom",
    "My boss is Maria.": "has_boss Maria",
    "I got divorced last year.": "marital_status divorced",
    "I'm allergic to nuts and shellfish.": "allergic_to nuts; allergic_to shellfish",
    "I have a peanut allergy.": "allergic_to peanut",
    "I'm not allergic to eggs anymore.": "ended: allergic_to eggs",
    "I'm vegetarian.": "is_a vegetarian",
    "I study physics at ETH Zurich.": "studies physics; studies_at ETH Zurich",
    "I study at the University of Oslo.": "studies_at University of Oslo",
    "I prefer tabs over spaces.": "prefers tabs",
    "I prefer working from home.": "prefers working from home",
    "My favourite colour is green.": "favourite_colour green",
    "My favorite color is green.": "favourite_colour green",
    "Dune is my favourite book.": "favourite_book Dune",
    'My favourite film is "The Third Man".': "favourite_film The Third Man",
    "I love live music!": "likes live music",
    "I'm a big fan of pottery.": "likes pottery",
    "I hate mushrooms.": "dislikes mushrooms",
    "I play the violin.": "plays violin",
    "I used to play drums.": "past: plays drums",
    "I've been playing guitar for five years.": "does playing guitar",
    "I'm learning Spanish.": "learning Spanish",
    "I use `ripgrep` instead of grep.": "uses ripgrep",
    "We no longer use Jenkins.": "ended: uses Jenkins",
    "I switched to Neovim last week.": "switched_to Neovim",
    "I graduated from MIT in 2015.": "graduated_from MIT",
    "Yesterday I joined a chess club.": "joined chess club",
    "I volunteer at a homeless shelter.": "volunteers_at a homeless shelter",
    "My goal is to run a marathon.": "has_goal run a marathon",
    "deploy host is beta-3": "deploy host is beta-3",
    "The deploy host is now `beta`.": "deploy host is beta",
    "Remember that the deploy host is beta-3.": "deploy host is beta-3",
    "The deploy host is no longer alpha-9.": "ended: deploy host is alpha-9",
    "The deploy host isn't alpha-9 anymore.": "ended: deploy host is alpha-9",
    "The deploy host used to be alpha-9.": "past: deploy host is alpha-9",
    "The deploy host has moved from alpha-9 to beta-3.": "deploy host is beta-3",
    "The budget for 2024 is 40k.": "budget for 2024 is 40k",
    "The budget for 2025 is $50k and the budget for 2026 is $60k.": (
        "budget for 2025 is $50k; budget for 2026 is $60k"
    ),
    "The port of the staging server is 8080.": "port of staging server is 8080",
    "The staging server's port is 8080.": "port of staging server is 8080",
    "The request limit is 100 requests per minute.": "request limit is 100 requests per minute",
    "The database timeout is 30 seconds.": "database timeout is 30 seconds",
    "The release deadline is 3 March 2025.": "release deadline is 3 March 2025",
    "Our default branch is main.": "default branch is main",
    "The staging url is https://staging.example.org/app.": (
        "staging url is https://staging.example.org/app"
    ),
    "The owner of the billing service is Anna Schmidt.": "owner of billing service is Anna Schmidt",
    "The backup directory is /var/backups.": "backup directory is /var/backups",
    "My email address is anna@example.org.": "user's email address is anna@example.org",
    "Our new service is called Zephyr.": "new service name Zephyr",
    "The office has moved from Leeds to York.": "office moved_to York",
    "- I live in Berlin\n- deploy host is beta-3": "lives_in Berlin; deploy host is beta-3",
    "Note: I live in Berlin.": "lives_in Berlin",
}

# What says nothing, each beside the nearest thing that does.
SAYS_NOTHING = [
    # about the reader, or asked
    ("You live in Berlin.", "I live in Berlin."),
    ("Your name is Anna.", "My name is Anna."),
    ("Your deploy host is beta-3.", "Our deploy host is beta-3."),
    ("Do you live in Berlin?", "Yes, I live in Berlin."),
    ("I live in Berlin?", "I live in Berlin!"),
    ("Does Anna live in Rome?", "Anna lives in Rome."),
    ("What is my name?", "My name is Bo."),
    ("Is the deploy host beta-3?", "The deploy host is beta-3."),
    ("Do you have a dog called Rex?", "I do have a dog called Rex."),
    ("What's my favourite colour?", "My favourite colour is red."),
    # supposed, wished, planned
    ("If I live in Berlin, I pay less.", "As I live in Berlin, I pay less."),
    ("If I lived in Berlin I would cycle.", "I live in Berlin and I cycle."),
    ("I would love to live in Berlin.", "I love Berlin."),
    ("I'd love to live in Berlin.", "I'm living in Berlin."),
    ("I want to live in Berlin.", "So I live in Berlin."),
    ("I'm going to move to Berlin.", "I moved to Berlin."),
    ("I will move to Berlin in May.", "I moved to Berlin in May."),
    ("I'm moving to Berlin next month.", "I have moved to Berlin."),
    ("I live in Berlin next month.", "I live in Berlin now."),
    ("I live in Berlin since 2077.", "I live in Berlin since 2017."),
    ("I might live in Berlin.", "I still live in Berlin."),
    ("I wish I lived in Berlin.", "Luckily, I live in Berlin."),
    ("Imagine I live in Berlin.", "Honestly, I live in Berlin."),
    ("Suppose my name is Anna.", "Hi, my name is Anna."),
    ("Let's say my name is Anna.", "Okay, my name is Anna."),
    ("I want to be a nurse.", "I'm a nurse."),
    ("I'd like a dog called Rex.", "I have a dog called Rex."),
    ("I wanted to join a gym.", "I joined a gym."),
    ("I nearly bought a car.", "I bought a car."),
    ("I should have bought a car.", "I have bought a car."),
    ("If the deploy host is beta-3, restart it.", "The deploy host is beta-3, restart it."),
    ("The deploy host should be beta-3.", "The deploy host is beta-3."),
    ("The deploy host will be beta-3.", "The deploy host is still beta-3."),
    ("Make sure the port of the app is 8080.", "Sure, the port of the app is 8080."),
    ("I would prefer tea.", "I prefer tea."),
    # denied
    ("I don't live in Berlin.", "I don't live in Berlin anymore."),
    ("I never lived in Berlin.", "I no longer live in Berlin."),
    ("I don't speak German.", "I speak German."),
    ("I'm not a nurse.", "I'm a nurse."),
    ("I'm not allergic to nuts.", "I'm allergic to nuts."),
    ("I'm not married to Sofia.", "I'm married to Sofia."),
    ("I haven't joined a gym.", "I've joined a gym."),
    ("I don't like mushrooms.", "I like mushrooms."),
    ("My name is not Anna.", "My name is Anna."),
    ("I never use vim.", "I use vim."),
    ("The deploy host is not beta-3.", "The deploy host is not beta-3 any more."),
    ("The office has not moved from Leeds to York.", "The office moved from Leeds to York."),
    # doubted, reported, quoted
    ("I think the deploy host is beta-3.", "By the way, the deploy host is beta-3."),
    ("The deploy host is beta-3, I think.", "The deploy host is beta-3, I checked."),
    ("Anna might live in Rome.", "Anna still lives in Rome."),
    ("Apparently Anna lives in Rome.", "Anna now lives in Rome."),
    ("According to Bo, Anna lives in Rome.", "As you know, Anna lives in Rome."),
    ("Anna lives in Rome, he said.", "Anna lives in Rome, he likes it."),
    ("He told me that I live in Berlin.", "Remember that I live in Berlin."),
    ("She said I live in Berlin.", "She knows. I live in Berlin."),
    ('"I live in Berlin," she said.', "I live in Berlin, she knows."),
    ("\u201cI live in Berlin,\u201d she wrote.", "I live in Berlin \u2014 she knows."),
    ("He shouted 'I live in Berlin now' and left.", "He left. I live in Berlin now."),
    ("> I live in Berlin", "I live in Berlin"),
    ("Anna: I live in Berlin", "Me: I live in Berlin"),
    ("[10:02] anna: I live in Berlin", "FYI: I live in Berlin"),
    ("On Monday Bo Smith wrote:\nI live in Berlin.", "On Monday, as always:\nI live in Berlin."),
    ("The log says the api port is 8080.", "The api port is 8080."),
    ("I read that Anna lives in Rome.", "Anna lives in Rome."),
    # code
    ("```\nI live in Berlin\n```", "Look:\n\nI live in Berlin"),
    ("Run this:\n\n    my name is Anna", "Run this:\n\nmy name is Anna"),
    ("Print `my name is Bo and so on`.", "I use `vim`."),
    # jokes, plays, tasks
    ("I live in Berlin lol", "I live in Berlin"),
    ("Haha, I live in Berlin, sure", "Sure, I live in Berlin"),
    ("Just kidding, I live in Berlin.", "Just so you know, I live in Berlin."),
    ("Translate into German. I live in Berlin.", "Answer in German. I live in Berlin."),
    ("Write me a short story. My name is Jack.", "Write it down. My name is Jack."),
    ("You are a helpful assistant. My name is Bo.", "You are helpful. My name is Bo."),
    ("Pretend to be a pirate. My name is Jack.", "Talk to me. My name is Jack."),
    ("In the game I'm a nurse.", "In the evening, I'm a nurse."),
    ("I live in Emacs.", "I live in Essen."),
    # words that look like the object
    ("I live in fear.", "I live in Freiburg."),
    ("i live in hope", "i live in halle"),
    ("I live in the moment.", "I live in the countryside."),
    ("I live for pizza.", "I love pizza."),
    ("I work at home.", "I work at Hertz."),
    ("I work for myself.", "I work for Mercedes."),
    ("I work at Christmas.", "I work at Chrysler."),
    ("I'm from the future.", "I'm from France."),
    ("I'm from Google.", "I'm from Greece."),
    ("We moved to Kubernetes.", "We moved to Kyoto."),
    ("I moved to Paris and then to Rome.", "I moved to Paris and like it."),
    ("I speak from experience.", "I speak Finnish."),
    ("I'm married to my job.", "I'm married to Jo."),
    ("I'm allergic to nonsense.", "I'm allergic to nickel."),
    ("I study hard.", "I study history."),
    ("I play a role.", "I play a flute."),
    ("I play with fire.", "I play chess."),
    ("I'm a terrible cook.", "I'm a trained cook."),
    ("Call me later.", "Call me Lena."),
    ("I was born ready.", "I was born in Riga."),
    ("My birthday is next week.", "My birthday is 3 May."),
    ("I gave my sister Lego.", "I visited my sister Lena."),
    ("My dog Rex died last year.", "My dog Rex slept all day."),
    ("Lunch is from Subway.", "Lena is originally from Sweden."),
    ("Nobody lives in Rome.", "Nora lives in Rome."),
    ("She lives in Rome.", "Sheila lives in Rome."),
    # what is meant lies elsewhere
    ("I like it.", "I like ink."),
    ("I love this song.", "I love folk songs."),
    ("I like the second option.", "I like second-hand books."),
    ("I use this daily.", "I use zsh daily."),
    ("I prefer it that way.", "I prefer short answers."),
    ("I bought it.", "I bought a bike."),
    ("I ran a query.", "I ran a marathon."),
    ("My favourite part was the end.", "My favourite season is autumn."),
    ("My favourite colour is hard to pick.", "My favourite colour is pink."),
    ("My favourite shop is closed.", "My favourite shop is Harrods."),
    ("It is one of my favourite books.", "Emma is my favourite book."),
    # neither now nor dated
    ("I lived in Berlin.", "I lived in Berlin until 2015."),
    ("I worked at Acme.", "I worked at Acme from 2010 to 2015."),
    ("I've worked at Acme.", "I've worked at Acme since 2010."),
    ("I used to be happy.", "I used to be a nurse."),
    ("The deploy host was beta-3.", "The deploy host used to be beta-3."),
    # not a setting
    ("The port is 8080.", "The api port is 8080."),
    ("The new version is 2.0.", "The library version is 2.0."),
    ("A port is a number.", "The db port is 5432."),
    ("The deploy host is down.", "The deploy host is d-1."),
    ("The deploy host is well-known.", "The deploy host is well-1."),
    ("The deploy host is 10 years old.", "The deploy host is 10.0.0.1."),
    ("The deploy host is beta-3 or beta-4.", "The deploy host is beta-3 again."),
    ("The port of the staging server is open.", "The port of the staging server is 80."),
    ("The budget for 2024 is tight.", "The budget for 2024 is 10."),
    ("The budget for 2024 is about 40k.", "The budget for 2024 is 40k."),
    ("The budget for 2024 is 40k short.", "The budget for 2024 is 40k now."),
    ("The library version is 3 weeks late.", "The library version is 3."),
    ("The owner of the house is French.", "The owner of the house is Fred."),
    ("The main branch is broken.", "The main branch is trunk."),
    ("The office is moving from Leeds to York.", "The office has moved from Leeds to York."),
    ("The db password is hunter2.", "The db host is hunter2."),
]


@pytest.mark.parametrize("text", SAYS)
def test_says(text: str) -> None:
    assert shown(derive(text)) == SAYS[text]


@pytest.mark.parametrize(("silent", "near"), SAYS_NOTHING)
def test_says_nothing_beside_what_says_something(silent: str, near: str) -> None:
    assert shown(derive(silent)) == ""
    assert shown(derive(near)) != ""


def test_tables_are_large_enough() -> None:
    assert len(SAYS) >= 80
    assert len({silent for silent, _ in SAYS_NOTHING}) >= 80
