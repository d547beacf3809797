"""The table of secrets with a recognizable form: the kind's name, what it must contain, its pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretKind:
    """Patterns start with a literal where possible, which makes them fast, and are bounded, which keeps them linear.

    One of the literal `hints` must occur before the slower pattern is tried; group 1, if any, is the secret.
    """

    name: str
    hints: tuple[bytes, ...]
    shape: re.Pattern[bytes]


def _kind(name: str, hints: str, shape: str) -> SecretKind:
    pattern = re.compile(rf"{shape}(?![\w-])".encode())
    return SecretKind(name, tuple(hint.encode() for hint in hints.split()), pattern)


_W = r"[A-Za-z0-9]"
_V = r"[A-Za-z0-9_-]"
_X = r"[0-9a-f]"

SECRET_KINDS: tuple[SecretKind, ...] = (
    _kind("an AWS access key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _kind("a GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"gh[pousr]_{_W}{{36,255}}"),
    _kind("a GitHub token", "github_pat_", r"github_pat_\w{60,255}"),
    _kind("a GitLab token", "glpat- glptt- gldt- glrt- glcbt- glft- glsoat- gloas-", rf"gl[a-z]{{2,5}}-{_V}{{20,100}}"),
    _kind("a Slack token", "xoxb- xoxa- xoxp- xoxr- xoxs- xoxe-", r"xox[abeprs]-[0-9]{6,15}-[0-9A-Za-z-]{16,250}"),
    _kind("a Slack token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,15}-[0-9]{8,15}-[0-9a-f]{32,80}"),
    _kind("a Slack webhook", "hooks.slack.com", rf"hooks\.slack\.com/services/(T\w{{6,14}}/B\w{{6,14}}/{_W}{{20,30}})"),
    _kind("a Discord webhook", "/api/webhooks/", rf"discord(?:app)?\.com/api/webhooks/([0-9]{{15,22}}/{_V}{{60,80}})"),
    _kind("a Stripe key", "_live_", rf"[rs]k_live_{_W}{{20,247}}"),
    _kind("a Stripe webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,64}"),
    _kind("an npm token", "npm_", rf"npm_{_W}{{36}}"),
    _kind("a PyPI token", "pypi-AgE", rf"pypi-AgE{_V}{{50,250}}"),
    _kind("a RubyGems key", "rubygems_", rf"rubygems_{_X}{{48}}"),
    _kind("a crates.io token", "cio", rf"cio{_W}{{32}}"),
    _kind("a Docker token", "dckr_", rf"dckr_[po]at_{_V}{{27,32}}"),
    _kind("a Google API key", "AIza", rf"AIza{_V}{{35}}"),
    _kind("a Google client secret", "GOCSPX-", rf"GOCSPX-{_V}{{28}}"),
    _kind("an OpenAI key", "sk-proj- sk-svcacct- sk-admin-", rf"sk-(?:proj|svcacct|admin)-{_V}{{40,200}}"),
    _kind("an OpenAI key", "T3BlbkFJ", rf"sk-{_W}{{20}}T3BlbkFJ{_W}{{20}}"),
    _kind("an Anthropic key", "sk-ant-", rf"sk-ant-[a-z0-9]{{3,12}}-{_V}{{60,200}}"),
    _kind("an OpenRouter key", "sk-or-v1-", rf"sk-or-v1-{_X}{{64}}"),
    _kind("a Hugging Face token", "hf_", rf"hf_{_W}{{34}}"),
    _kind("an Azure storage key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{86}==)"),
    _kind("a DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_", rf"do[opr]_v1_{_X}{{64}}"),
    _kind("a SendGrid key", "SG.", rf"SG\.{_V}{{22}}\.{_V}{{43}}"),
    _kind("a Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _kind("a Telegram bot token", ":AA", rf"[0-9]{{8,10}}:AA{_V}{{33}}"),
    _kind("a Databricks token", "dapi", rf"dapi{_X}{{32}}(?:-[0-9])?"),
    _kind("a Vault token", "hvs. hvb.", rf"hv[sb]\.{_V}{{24,300}}"),
    _kind("a Terraform token", ".atlasv1.", rf"{_W}{{14}}\.atlasv1\.{_V}{{60,80}}"),
    _kind("a Tailscale key", "tskey-", rf"tskey-[a-z]{{3,10}}-{_W}{{10,30}}-{_W}{{20,40}}"),
    _kind("a Linear key", "lin_api_", rf"lin_api_{_W}{{40}}"),
    _kind("a Grafana token", "glsa_", rf"glsa_{_W}{{32}}_{_X}{{8}}"),
    _kind("a Supabase token", "sbp_", rf"sbp_{_X}{{40}}"),
    _kind("an age secret key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    _kind("a signed JWT", "eyJ", rf"(?<![\w-])eyJ{_V}{{10,2000}}\.eyJ{_V}{{37,4000}}\.{_V}{{20,1000}}"),
)

# A placeholder, or a value read from elsewhere: never a secret.
PLACEHOLDER = re.compile(
    rb"example|sample|placeholder|change.?me|your|x{4,}|dummy|fake|mock|test|todo|fixme|redacted|insert|replace|\*{3,}"
    rb"|\.{3,}|[<>{}()]|\$|%\w|environ|getenv|0{6,}|1{6,}|a{6,}|1234567|abcdefg|qwert|deadbeef|foobar|lorem|notreal"
    rb"|not.?a.?real|invalid|secret.?key|password|s3cr3t|hunter2|\bnone\b|\bnull\b",
    re.IGNORECASE,
)
PRETENDED = re.compile(rb"fake|dummy|example|placeholder|mock|sample|not.?a.?real|redacted|revoked", re.IGNORECASE)
