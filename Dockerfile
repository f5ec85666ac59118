# packs-mcp in a container, used over standard input and output:
#
#   docker build -t packs-mcp .
#   docker run -i --rm -v packs-mcp:/data -v "$PWD/packs:/packs:ro" packs-mcp --packs /packs
#
# Packs run the programs that are in the image: a shell, git and jq. If yours
# need others, begin with "FROM packs-mcp" and install them there as root.

# The digests are those of the multi-platform images; dependabot proposes newer ones.
# This stage runs on the builder's own processor, and builds for the image's.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
ARG COMMIT=
ARG DATE=
ARG TARGETOS
ARG TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH
RUN go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT -X main.date=$DATE" -o packs-mcp.bin ./cmd/packs-mcp \
    && go build -trimpath -ldflags "-s -w" -o packs-mcp-sigstore.bin ./cmd/packs-mcp-sigstore

FROM debian:bookworm-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
# tini is process 1: it reaps what a killed run leaves behind, and forwards signals.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git jq tini \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin packs \
    && install -d -m 0700 -o packs -g packs /data \
    && install -d /packs /project
COPY --from=build /src/packs-mcp.bin /usr/local/bin/packs-mcp
COPY --from=build /src/packs-mcp-sigstore.bin /usr/local/bin/packs-mcp-sigstore

# Configuration, grants, workspaces and the audit log: everything that outlives a run.
ENV PACKS_MCP_HOME=/data
VOLUME /data
USER packs
# Mount here the repository that "project" tools work on.
WORKDIR /project
ENTRYPOINT ["tini", "--", "packs-mcp"]

ARG VERSION=devel
# The last label proves to the MCP registry that this image belongs to its entry server.json.
LABEL org.opencontainers.image.title="packs-mcp" \
      org.opencontainers.image.description="Capability packs for any MCP client" \
      org.opencontainers.image.source="https://github.com/packs-mcp/packs-mcp" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      io.modelcontextprotocol.server.name="io.github.packs-mcp/packs-mcp"
