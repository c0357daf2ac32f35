/** How the service proves who it is. Secrets are given with each call, and kept nowhere else. */
export type Credentials =
  | { readonly kind: 'token'; token(): string | undefined }
  | { readonly kind: 'app'; readonly id: number; key(): string | undefined }
