{
  description = "latlab, a latency laboratory";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "latlab";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [ "--package" "latlab" "--bin" "latlab" ];
          LATLAB_COMMIT = self.rev or "";
          # The tests need the network, namespaces and many foreign programs: `just ci`.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            $out/bin/latlab man --output man
            installManPage man/*.1
            installShellCompletion --cmd latlab \
              --bash <($out/bin/latlab completions bash) \
              --zsh <($out/bin/latlab completions zsh) \
              --fish <($out/bin/latlab completions fish)
          '';
          meta = {
            inherit (manifest) description;
            license = with pkgs.lib.licenses; [ mit asl20 ];
            platforms = pkgs.lib.platforms.linux;
            mainProgram = "latlab";
          };
        };
      });

      devShells = forEach (pkgs: {
        default = pkgs.mkShell { packages = [ pkgs.cargo pkgs.rustc pkgs.clippy pkgs.rustfmt pkgs.just ]; };
      });
    };
}
