/*
 * Running every rule costs tens of microseconds and nearly every text holds no secret, so a cheap look comes first.
 * It must never say no where a rule would find something; saying yes too often only costs time. Each rule's
 * patterns need one of these literal parts; tests/audit/suspicion.test.ts generates strings from the very patterns
 * that the installed rules use and holds this against them, so that an upgrade cannot slip past.
 *
 * There is no word boundary on the left of any part on purpose: the look is also taken at serialised JSON, where a
 * newline before a token has become the letter n. No part holds a character that JSON escapes.
 */

/** Parts with a separator. The search runs from separator to separator and looks back, several times faster than
 * an alternation of words. */
const PREFIXED =
  /_(?:(?<=(?:npm|gsk|hf|lin_api|ntn|shp(?:pa|ca|at|ss)|[rs]k_(?:live|test)|gh[oprsu]|github_pat|glc|glsa|vc[aikpr]|dckr_pat|figd|cfk|cfut|cfat|orct)_)[A-Za-z0-9_+/-]|(?<=ops_)ey|authToken=)|-(?:(?<=(?:xox[abopr]|xapp|glpat|tskey)-)[A-Za-z0-9_-]|(?<=sk-)[A-Za-z0-9_-]{20}|BEGIN(?<=-----BEGIN))|\.(?<=(?:SG|hv[bsr])\.)[\w-]|:\/\/[^\s/@]*@/

/** Parts without one, or that may come in any case. */
const LABELLED =
  /access_?key|dapi[0-9a-f]{8}|hooks\.slack\.com|x-oauth-basic|A(?:3T[A-Z0-9]|KIA|GPA|IDA|ROA|IPA|NPA|NVA|SIA)[A-Z0-9]{16}/i

/** One rule parses JSON, where any part can be spelt with escapes. */
const JSON_TEXT = /^\s*[{["]/

export function mayHoldSecret(text: string): boolean {
  return PREFIXED.test(text) || LABELLED.test(text) || (text.includes('\\u') && JSON_TEXT.test(text))
}
