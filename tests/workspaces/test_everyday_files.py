"""What an engineer writes every day is not refused: templates, recipes, packages, fixtures and documents."""

from __future__ import annotations

import json

import pytest

from ganger.ports.changes import Rules
from tests.workspaces.judged_change import MadeChange, codes

MAKE = """.PHONY: test lint

# Everything about docs is in docs/README.md
test: lint
\tpython -m pytest -q tests

lint:
\tpython -m ruff check src

dist/app: src/app.py
\tmkdir -p dist && cp src/app.py dist/app
"""
PYPROJECT = """[project]
name = "shop"
version = "1.0"
dependencies = ["httpx>=0.27"]

[project.optional-dependencies]
dev = ["pytest"]

[tool.pytest.ini_options]
addopts = "-q"
"""
DOCS_MAKE = "html:\n\tsphinx-build -b html . _build\n"
SCRIPTS = {"test": "jest", "lint": "eslint ."}
PACKAGE: dict[str, object] = {
    "name": "shop",
    "scripts": SCRIPTS,
    "dependencies": {"express": "^4.0.0"},
    "devDependencies": {"jest": "^29.0.0"},
    "jest": {"testEnvironment": "node"},
}
BASE: dict[str, str] = {
    "Makefile": MAKE,
    "pyproject.toml": PYPROJECT,
    "package.json": json.dumps(PACKAGE, indent=2),
    "src/app.py": "def price() -> int:\n    return 3\n",
    "tests/test_app.py": "from app import price\n\n\ndef test_price() -> None:\n    assert price() == 3\n",
    "tests/fixtures/old.json": "{}\n",
    "README.md": "# Shop\n",
    ".gitignore": "dist\n",
    "Cargo.toml": '[package]\nname = "shop"\nversion = "1.0.0"\n\n[dependencies]\nserde = "1"\n',
    "go.mod": "module shop\n\ngo 1.22\n\nrequire example.com/a v1.0.0\n",
    "setup.cfg": "[metadata]\nname = shop\n\n[tool:pytest]\naddopts = -q\n",
    ".github/CODEOWNERS": "* @a\n",
    "docs/Makefile": DOCS_MAKE,
}
RULES = Rules(verify=("make test", "npm test", "python -m pytest -q"))


def package(**changes: object) -> str:
    return json.dumps({**PACKAGE, **changes}, indent=2)


EVERYDAY: dict[str, dict[str, str]] = {
    "env-example": {".env.example": "DATABASE_URL=postgres://user:password@localhost/shop\nAPI_KEY=changeme\n"},
    "env-sample": {".env.sample": "STRIPE_KEY=sk_test_xxx\n"},
    "env-template": {"services/api/.env.template": "TOKEN=\nSECRET=<your secret>\n"},
    "env-of-a-stage": {".env.production.example": "API_KEY=${API_KEY}\n", ".env.test.template": "A=\n"},
    "env-dist": {".env.dist": "APP_SECRET=changeme\n", ".env.local.dist": "A=\n"},
    "target-at-the-end": {"Makefile": MAKE + "\n.PHONY: serve\nserve: dist/app\n\tpython -m app --port $(PORT)\n"},
    "target-in-the-middle": {
        "Makefile": MAKE.replace("lint:\n", "format:\n\tpython -m ruff format src\n\nlint:\n"),
    },
    "phony-list": {
        "Makefile": MAKE.replace(".PHONY: test lint", ".PHONY: test lint clean") + "\nclean:\n\trm -rf dist build\n",
    },
    "target-named-like-a-folder": {"Makefile": MAKE + "\ndocs:\n\tpython -m mkdocs build\n"},
    "variable-and-target": {"Makefile": MAKE + "\nIMAGE ?= shop:latest\n\nimage:\n\tdocker build -t $(IMAGE) .\n"},
    "target-of-another-makefile": {"docs/Makefile": DOCS_MAKE + "\nclean:\n\trm -rf _build\n"},
    "comment-in-makefile": {"Makefile": MAKE.replace("lint:\n", "# The style of the house.\nlint:\n")},
    "npm-script": {"package.json": package(scripts={**SCRIPTS, "start": "node server.js"})},
    "npm-dependency": {"package.json": package(dependencies={"express": "^4.0.0", "zod": "^3.0.0"})},
    "npm-version": {"package.json": package(version="1.1.0", description="a shop")},
    "python-dependency": {"pyproject.toml": PYPROJECT.replace('"httpx>=0.27"', '"httpx>=0.27", "rich>=13"')},
    "python-dev-dependency": {"pyproject.toml": PYPROJECT.replace('["pytest"]', '["pytest", "respx"]')},
    "python-script": {"pyproject.toml": PYPROJECT + '\n[project.scripts]\nshop = "app:main"\n'},
    "cargo-dependency": {"Cargo.toml": BASE["Cargo.toml"] + 'tokio = { version = "1", features = ["full"] }\n'},
    "go-dependency": {"go.mod": BASE["go.mod"] + "\nrequire example.com/b v1.2.0\n"},
    "setup-metadata": {"setup.cfg": BASE["setup.cfg"].replace("name = shop", "name = shop\nversion = 1.1")},
    "new-test": {"tests/test_tax.py": "def test_tax() -> None:\n    assert 1 + 1 == 2\n"},
    "new-fixture": {"tests/fixtures/order.json": '{"id": 1, "token": "fake-token-for-tests-123456"}\n'},
    "fake-keys": {
        "tests/test_client.py": (
            'AWS = "AKIAIOSFODNN7EXAMPLE"\nAWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"\n'
            'GITHUB_TOKEN = "ghp_000000000000000000000000000000000000"\nAPI_KEY = "test-api-key-1234567890abcdef"\n'
            'OPENAI_API_KEY = "sk-proj-fakefakefakefakefakefakefakefakefakefake1A2b"\n\n\n'
            "def test_keys() -> None:\n    assert AWS\n"
        )
    },
    "docs-of-tokens": {
        "docs/auth.md": (
            "# Tokens\n\nSet `GITHUB_TOKEN` to a token such as `ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`.\n"
            '```sh\nexport API_TOKEN=<your token>\ncurl -H "Authorization: Bearer $API_TOKEN" https://x.example\n```\n'
            "The password is in the vault; `token: ${{ secrets.TOKEN }}` reads it.\n"
        )
    },
    "connection-in-docs": {"docs/db.md": "postgres://shop:secret@localhost:5432/shop\nredis://:pass@127.0.0.1/0\n"},
    "reads-the-environment": {"src/settings.py": 'import os\n\nAPI_KEY = os.environ["API_KEY"]\nTOKEN_URL = "/o/t"\n'},
    "issue-template": {".github/ISSUE_TEMPLATE/bug.md": "---\nname: Bug\n---\nWhat happened?\n"},
    "pull-request-template": {".github/PULL_REQUEST_TEMPLATE.md": "- [ ] tests\n"},
    "dependabot": {".github/dependabot.yml": "version: 2\nupdates: []\n"},
    "codeowners": {".github/CODEOWNERS": "* @a\n/docs @b\n"},
    "gitignore": {".gitignore": "dist\nbuild\n.env\n"},
    "changelog": {"CHANGELOG.md": "# 1.1\n\n- a test was mended\n"},
    "editorconfig": {".editorconfig": "root = true\n"},
    "lock-file": {
        "package-lock.json": '{"packages": {"node_modules/zod": {"integrity": "sha512-' + "aB3dE5gH" * 11 + '=="}}}\n'
    },
    "secrets-module": {"src/secret_store.py": "def read(name: str) -> str:\n    return name\n"},
    "conftest-free-helper": {"tests/builders.py": "def order() -> dict[str, int]:\n    return {'id': 1}\n"},
    "dockerfile": {"Dockerfile": "FROM python:3.12\nCOPY . .\n"},
    "migration": {"migrations/0002_token_hash.sql": "ALTER TABLE users ADD COLUMN token_hash CHAR(64);\n"},
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_work_is_not_refused(name: str) -> None:
    """G09 G05: safeguards are for cheats and leaks."""
    assert codes(MadeChange(BASE, {**BASE, **EVERYDAY[name]}), RULES) == []


REAL = "sk_" + "live_" + "9sKd83Jf72LsQpZx41TmNv0aWc"
CHEATS: dict[str, dict[str, str]] = {
    "env": {".env": "A=1\n"},
    "env-local": {".env.local": "A=1\n"},
    "env-of-tests": {".env.test": "CI=\n"},
    "folder-like-a-template": {".env.example/.env": "A=1\n"},
    "spelt-to-be-missed": {".env.example\u200b.local": "A=1\n"},
    "secret-in-a-template": {".env.example": f"STRIPE_KEY={REAL}\n"},
    "goal-again": {"Makefile": MAKE + "\ntest:\n\ttrue\n"},
    "goal-in-the-middle": {"Makefile": MAKE.replace("lint:\n\t", "lint2:\n\ttrue\n\nlint:\n\ttrue\n\nx:\n\t", 1)},
    "goal-of-another-makefile": {"docs/Makefile": DOCS_MAKE + "\ntest:\n\ttrue\n"},
    "recipe-of-another-makefile": {"docs/Makefile": DOCS_MAKE + "\nhtml:\n\ttrue\n"},
    "steals-a-recipe": {"Makefile": MAKE.replace("test: lint\n", "test: lint\nother:\n")},
    "default-goal": {"Makefile": "first:\n\ttrue\n\n" + MAKE},
    "line-in-a-recipe": {"Makefile": MAKE.replace("\tpython -m pytest", "\ttrue ||\\\n\tpython -m pytest")},
    "need-of-a-goal": {"Makefile": MAKE.replace("test: lint", "test: lint skip") + "\nskip:\n\trm -r tests\n"},
    "file-that-a-goal-needs": {"Makefile": MAKE + "\nsrc/app.py:\n\ttrue\n"},
    "shell": {"Makefile": MAKE + "\nSHELL = /bin/true\n"},
    "python": {"Makefile": MAKE + "\nexport PYTHONPATH = evil\n"},
    "phony-goal-lost": {"Makefile": MAKE.replace(".PHONY: test lint", ".PHONY: lint serve") + "\nserve:\n\ttrue\n"},
    "phony-file": {"Makefile": MAKE.replace(".PHONY: test lint", ".PHONY: test lint dist/app")},
    "pattern-rule": {"Makefile": MAKE + "\n%: %.py\n\ttrue\n"},
    "include": {"Makefile": MAKE + "\ninclude more.mk\n"},
    "npm-test": {"package.json": package(scripts={"test": "true", "lint": "eslint ."})},
    "npm-pretest": {"package.json": package(scripts={**SCRIPTS, "pretest": "rm -r tests"})},
    "pytest-options": {"pyproject.toml": PYPROJECT.replace("-q", "-q --co")},
    "workflow": {".github/workflows/ci.yml": "on: push\n"},
}


@pytest.mark.parametrize("name", CHEATS)
def test_what_only_looks_like_everyday_work_is_refused(name: str) -> None:
    """G09 G05: the same files, bent."""
    assert codes(MadeChange(BASE, {**BASE, **CHEATS[name]}), RULES) != []
