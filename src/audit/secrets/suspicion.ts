/*
 * Running every rule takes tens of microseconds and nearly every text holds no secret, so a cheap check comes first. False
 * positives only cost time, but a false negative would leak a secret. Each rule's patterns need one of these literal
 * parts; tests/audit/suspicion.test.ts generates strings from the patterns of the installed rules and checks them against
 * this, which covers upgrades.
 *
 * The parts have no word boundary on the left on purpose: the check also runs on serialised JSON, where a newline before
 * a token has become the letter n. No part contains a character that JSON escapes.
 */

/** Parts with a separator. Searching for separators and looking back is several times faster than an alternation of words. */
const PREFIXED =
  /_(?:(?<=(?:npm|gsk|hf|lin_api|ntn|shp(?:pa|ca|at|ss)|[rs]k_(?:live|test)|gh[oprsu]|github_pat|glc|glsa|vc[aikpr]|dckr_pat|figd|cfk|cfut|cfat|orct)_)[A-Za-z0-9_+/-]|(?<=ops_)ey|authToken=)|-(?:(?<=(?:xox[abopr]|xapp|glpat|tskey)-)[A-Za-z0-9_-]|(?<=sk-)[A-Za-z0-9_-]{20}|BEGIN(?<=-----BEGIN))|\.(?<=(?:SG|hv[bsr])\.)[\w-]|:\/\/[^\s/@]*@/

/** Parts without a separator, or with any case. */
const LABELLED =
  /access_?key|dapi[0-9a-f]{8}|hooks\.slack\.com|x-oauth-basic|A(?:3T[A-Z0-9]|KIA|GPA|IDA|ROA|IPA|NPA|NVA|SIA)[A-Z0-9]{16}/i

/** The rules include one that parses JSON, where any part can be written with escapes. */
const JSON_TEXT = /^\s*[{["]/

export function mayHoldSecret(text: string): boolean {
  return PREFIXED.test(text) || LABELLED.test(text) || (text.includes('\\u') && JSON_TEXT.test(text))
}
